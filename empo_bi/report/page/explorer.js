"use strict";
// Looks through a run. Everything that comes from the run is put on the page as text, never as HTML.
(async () => {
  const colourOf = (k) => `var(--c${k % 8})`; // Okabe and Ito's, which the colour-blind can tell apart
  const RAMP = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
  const ARROWS = ["→", "↓", "←", "↑"];
  const AGENT_COLOURS = {red: "#cd3028", green: "#10ac6a", blue: "#1864be", purple: "#a854ce", yellow: "#fac81e", grey: "#8c939e"};
  const SHOWN_MOVES = 6;
  const $ = (id) => document.getElementById(id);
  const head = JSON.parse($("head").textContent);

  // --- what is embedded ------------------------------------------------------------------------------------------------

  const VIEWS = {u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array};

  async function inflated(base64) {
    const text = atob(base64);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  function unpacked(block, entry) {
    if (entry.type === "text") {
      return JSON.parse(new TextDecoder().decode(block.subarray(entry.at, entry.at + entry.shape[0])));
    }
    const View = VIEWS[entry.type], n = entry.shape.reduce((a, b) => a * b, 1);
    return new View(block.slice(entry.at, entry.at + n * View.BYTES_PER_ELEMENT).buffer); // a copy begins where numbers may
  }

  // What is there already, title and map, is shown first. (A page in the background is not drawn, and need not wait for that.)
  await Promise.race([new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn))), new Promise((later) => setTimeout(later, 100))]);
  const D = {};
  try {
    const block = await inflated($("block").textContent.trim());
    for (const [name, entry] of Object.entries(head.arrays)) D[name] = unpacked(block, entry);
  } catch (error) {
    $("trouble").textContent = `This browser cannot read the page's data (${error}); a current one can.`;
    $("trouble").hidden = false;
    return;
  }
  const shape = (name) => head.arrays[name].shape;
  const N = D.level.length, T = head.horizon, H = head.humans.length, A = head.actions.length;
  const G = shape("Vh_e")[2], R = head.robot_profiles.length, J = shape("outcome_count")[1], I = head.agents.length;
  const phase1 = head.optimistic ? "helped" : "against robot"; // what the robots of phase 1 do to the human
  const hasPhase1 = shape("Vh_m")[0] > 0, grid = head.grid;

  const levelStart = new Int32Array(T + 2).fill(N);
  for (let n = N - 1; n >= 0; n--) levelStart[D.level[n]] = n;
  for (let t = T; t >= 0; t--) if (levelStart[t] === N || levelStart[t] > levelStart[t + 1]) levelStart[t] = Math.min(levelStart[t], levelStart[t + 1]);
  const outcomeStart = new Uint32Array(N + 1);
  for (let n = 0, at = 0; n < N; n++) {
    for (let j = n * J; j < (n + 1) * J; j++) at += D.outcome_count[j];
    outcomeStart[n + 1] = at;
  }
  const onLevel = (t) => Array.from({length: levelStart[t + 1] - levelStart[t]}, (_, i) => levelStart[t] + i);
  const stepName = (t) => `${grid ? "step" : "level"} ${head.level_values[t]}`;

  function split(pairs) { // [[state, probability]] to those that are here, the likeliest first, and the rest
    const here = pairs.filter(([s, p]) => s >= 0 && p > 0).sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    return {here, rest: pairs.filter(([s]) => s < 0).reduce((sum, [, p]) => sum + p, 0)};
  }

  function successors(n) {
    const pairs = [];
    for (let l = D.successor_start[n]; l < D.successor_start[n + 1]; l++) pairs.push([D.successor[l], D.successor_probability[l]]);
    return split(pairs);
  }

  function outcomes(n, picks) {
    let j = 0;
    for (let i = I - 1; i >= 0; i--) j = j * A + picks[i];
    let at = outcomeStart[n];
    for (let k = 0; k < j; k++) at += D.outcome_count[n * J + k];
    const pairs = [];
    for (let e = at; e < at + D.outcome_count[n * J + j]; e++) {
      pairs.push([D.successor[D.successor_start[n] + D.outcome_successor[e]], D.probabilities[D.outcome_probability[e]]]);
    }
    return split(pairs);
  }

  // --- words and numbers -----------------------------------------------------------------------------------------------

  function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null));
    return element;
  }

  function svg(tag, attributes = {}, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }

  function format(value) {
    if (Number.isNaN(value)) return "–";
    if (value === 0) return "0";
    const size = Math.abs(value);
    if (size >= 1e-3 && size < 1e6) return String(Number(value.toPrecision(4)));
    return value.toExponential(2).replace("-", "−").replace("e+", "e");
  }
  const signed = (text) => text.replace(/-/g, "−");

  function chance(p) { // probabilities, and values that are such
    if (Number.isNaN(p)) return "–";
    return p === 0 || p === 1 ? String(p) : p < 0.0005 ? p.toExponential(1) : p > 0.9995 ? p.toPrecision(5) : p.toFixed(3);
  }

  function inCell(value) {
    const size = Math.abs(value);
    return signed(size === 0 ? "0" : size < 0.001 ? "≈0" : size < 1 ? value.toFixed(3).replace("0.", ".") : String(Number(value.toPrecision(3))));
  }

  function num(name, value, how = format) {
    return el("span", {class: "num", "data-name": name, "data-value": String(value), title: String(value)}, signed(how(value)));
  }

  const actions = (profile) => profile.length ? profile.map((a) => head.actions[a]).join(" + ") : "nothing";
  const cellName = (cell) => `${cell % grid.width},${Math.floor(cell / grid.width)}`;
  const count = (n) => n.toLocaleString("en");

  // --- where we are ----------------------------------------------------------------------------------------------------

  const S = {n: 0, path: [0], at: 0, past: [], marked: 0, agent: head.robots[0] ?? 0, human: 0, goal: 0, overlay: "none",
    outlines: true, picks: new Array(I).fill(0), timer: null, sorted: null, more: false, picked: false};

  function show(n, {remember = true} = {}) {
    if (remember && n !== S.n) { S.past.push(S.n); if (S.past.length > 500) S.past.shift(); }
    S.n = n;
    S.marked = 0;
    S.more = false;
    $("status").textContent = "";
    render();
  }

  function walk(n) { // along a transition
    if (S.path[S.at + 1] !== n) S.path = [...S.path.slice(0, S.at + 1), n];
    S.at += 1;
    show(n);
  }

  function jump(n, options) { // anywhere; what is earlier on the path stays
    const found = S.path.indexOf(n);
    if (found >= 0) S.at = found;
    else {
      S.path = [...S.path.slice(0, S.at + 1).filter((m) => D.level[m] < D.level[n]), n];
      S.at = S.path.length - 1;
    }
    show(n, options);
  }

  function later() {
    const {here} = successors(S.n);
    if (S.marked === 0 && S.at + 1 < S.path.length) walk(S.path[S.at + 1]);
    else if (here.length) walk(here[Math.min(S.marked, here.length - 1)][0]);
  }

  function earlier() {
    if (S.at > 0) { S.at -= 1; show(S.path[S.at]); }
    else if (D.level[S.n] > 0) jump(levelStart[D.level[S.n] - 1]);
  }

  function toLevel(t) { // on the path where it has that level, along likeliest successors where it does not reach that far
    const found = S.path.findIndex((m) => D.level[m] === t);
    if (found >= 0) { S.at = found; show(S.path[found]); return; }
    const path = [...S.path], end = () => path[path.length - 1];
    while (D.level[end()] < t) {
      const {here} = successors(end());
      if (!here.length) break;
      path.push(here[0][0]);
    }
    if (D.level[end()] === t) { S.path = path; S.at = path.length - 1; show(end()); return; }
    const filled = [...Array(T + 1).keys()].filter((u) => levelStart[u] < levelStart[u + 1]); // some levels may have no state here
    jump(levelStart[filled.reduce((best, u) => Math.abs(u - t) < Math.abs(best - t) ? u : best)]);
  }

  function back() {
    if (S.past.length) jump(S.past.pop(), {remember: false});
  }

  function play(on) {
    clearInterval(S.timer);
    S.timer = null;
    if (on && D.goes_on[S.n]) {
      S.timer = setInterval(() => { S.marked = 0; later(); if (!D.goes_on[S.n]) play(false); }, 800);
    }
    $("play").setAttribute("aria-pressed", String(S.timer !== null));
    $("play-word").textContent = S.timer ? "pause" : "play";
  }

  function statesWith(agent, cell) { // on this level, the best first
    const now = S.n, same = (m) => D.others[m * I + agent] === D.others[now * I + agent];
    const alike = (m) => same(m) && D.agent_direction[m * I + agent] === D.agent_direction[now * I + agent];
    return onLevel(D.level[now]).filter((m) => D.agent_cell[m * I + agent] === cell)
      .sort((a, b) => alike(b) - alike(a) || same(b) - same(a) || D.reached[b] - D.reached[a] || a - b);
  }

  function toCell(cell) {
    if (D.agent_cell[S.n * I + S.agent] === cell) return;
    const [best] = statesWith(S.agent, cell);
    if (best === undefined) {
      $("status").textContent = `No state that is in this file has ${head.agents[S.agent].name} on ${cellName(cell)} at ${stepName(D.level[S.n])}.`;
    } else jump(best);
  }

  function clicked(cell) {
    for (let i = 0; i < I; i++) {
      if (i !== S.agent && D.agent_cell[S.n * I + i] === cell) { S.agent = i; render(); return; }
    }
    toCell(cell);
  }

  // --- the grid --------------------------------------------------------------------------------------------------------

  const sheet = new Image();
  if (grid) { sheet.src = grid.sheet; await sheet.decode(); }

  function cellsOf(n) {
    const cells = D.first_cells.slice();
    for (let d = D.difference_start[n]; d < D.difference_start[n + 1]; d++) cells[D.difference_cell[d]] = D.difference_shown[d];
    return cells;
  }

  function paint(canvas, n, tile) {
    canvas.width = grid.width * tile;
    canvas.height = grid.height * tile;
    const context = canvas.getContext("2d");
    context.imageSmoothingQuality = "high";
    cellsOf(n).forEach((sprite, c) => {
      const x = (sprite % grid.columns) * grid.tile, y = Math.floor(sprite / grid.columns) * grid.tile;
      context.drawImage(sheet, x, y, grid.tile, grid.tile, (c % grid.width) * tile, Math.floor(c / grid.width) * tile, tile, tile);
    });
  }

  function ramp(share) {
    const place = Math.max(0, Math.min(1, share)) * (RAMP.length - 1), low = Math.min(Math.floor(place), RAMP.length - 2);
    return `rgb(${RAMP[low].map((value, i) => Math.round(value + (place - low) * (RAMP[low + 1][i] - value))).join(" ")})`;
  }

  const OVERLAYS = {none: () => null};
  if (grid) {
    OVERLAYS.reached = () => {
      const from = (D.level[S.n] * I + S.agent) * grid.width * grid.height, found = new Map();
      for (let c = 0; c < grid.width * grid.height; c++) if (D.cell_reached[from + c] > 0) found.set(c, D.cell_reached[from + c]);
      return found;
    };
    const byCell = (value) => () => {
      const found = new Map(), group = D.others[S.n * I + S.agent];
      for (const m of onLevel(D.level[S.n])) {
        const cell = D.agent_cell[m * I + S.agent];
        if (D.others[m * I + S.agent] === group && !found.has(cell)) found.set(cell, value(statesWith(S.agent, cell)[0]));
      }
      return found;
    };
    OVERLAYS.V_r = byCell((m) => D.V_r[m]);
    for (let h = 0; h < H; h++) OVERLAYS[`X_h:${h}`] = byCell((m) => D.goes_on[m] ? D.X_h[m * H + h] : NaN);
    const ofGoal = (values) => byCell((m) => Number.isNaN(weightOf(S.human, S.goal, m)) ? NaN : values[(m * H + S.human) * G + S.goal]);
    OVERLAYS.Vh_e = ofGoal(D.Vh_e);
    if (hasPhase1) OVERLAYS.Vh_m = ofGoal(D.Vh_m);
  }

  function overlayName(key) {
    const agent = head.agents[S.agent].name, by = `by the cell of ${agent}, all else as now`;
    const goal = head.goals[S.human]?.[S.goal]?.label ?? "–", human = head.agents[head.humans[S.human]]?.name;
    if (key === "none") return "nothing";
    if (key === "reached") return `where ${agent} is at this step (probability)`;
    if (key === "V_r") return `the robot's value V_r, ${by}`;
    if (key.startsWith("X_h:")) return `power of ${head.agents[head.humans[Number(key.slice(4))]].name}, ${by}`;
    const how = key === "Vh_e" ? "with this robot" : head.optimistic ? "if the robot helps" : "if the robot works against it";
    return `value ${how} of goal ${goal} of ${human}, ${by}`;
  }

  function renderBoard() {
    if (!grid) { $("plain").textContent = D.state[S.n]; return; }
    paint($("picture"), S.n, grid.tile);
    $("picture").setAttribute("aria-label", D.words[S.n]);
    const marks = $("marks"), parts = [];
    const heat = OVERLAYS[S.overlay](), legend = $("legend");
    legend.hidden = !heat;
    if (heat) {
      const values = [...heat.values()].filter((v) => !Number.isNaN(v));
      const scale = S.overlay === "V_r" ? (v) => -Math.log(-v) : (v) => v;
      const low = S.overlay === "reached" ? 0 : Math.min(...values.map(scale)), high = Math.max(...values.map(scale));
      for (const [cell, value] of heat) {
        const x = cell % grid.width, y = Math.floor(cell / grid.width);
        if (Number.isNaN(value)) continue;
        parts.push(svg("rect", {x, y, width: 1, height: 1, fill: ramp(high > low ? (scale(value) - low) / (high - low) : 1), opacity: 0.72,
          "data-cell": cellName(cell), "data-value": String(value)}));
        const text = svg("text", {x: x + 0.5, y: y + 0.5});
        text.textContent = inCell(value); // there is little room: exact numbers are in the legend and, by a click, in the state
        parts.push(text);
      }
      const lowest = S.overlay === "reached" ? 0 : Math.min(...values), how = S.overlay === "V_r" ? format : chance;
      legend.replaceChildren(values.length ? num("overlay low", lowest, how) : "–", el("i"), values.length ? num("overlay high", Math.max(...values), how) : "–",
        el("span", {}, `${heat.size} ${heat.size === 1 ? "cell" : "cells"}${S.overlay === "reached" ? "" : " with states in this file"}`));
    }
    if (S.outlines && H) {
      head.goals[S.human].forEach((goal, g) => {
        if (!goal || g === S.goal) return;
        goal.places.forEach((place) => parts.push(outline(place, {stroke: "#0072B2", "stroke-width": 0.045, "stroke-dasharray": ".14 .09", opacity: 0.85})));
      });
      for (const place of head.goals[S.human][S.goal]?.places ?? []) {
        parts.push(outline(place, {stroke: "#fff", "stroke-width": 0.13}), outline(place, {stroke: "#D55E00", "stroke-width": 0.08}));
      }
    }
    const at = D.agent_cell[S.n * I + S.agent];
    const ring = {cx: (at % grid.width) + 0.5, cy: Math.floor(at / grid.width) + 0.5, r: 0.46, fill: "none"};
    parts.push(svg("circle", {...ring, stroke: "#fff", "stroke-width": 0.1}), svg("circle", {...ring, stroke: "#111", "stroke-width": 0.045}));
    marks.replaceChildren(...parts, ...badges());
  }

  function badges() { // each agent's number at the top right of its cell; those who share a cell side by side, then below
    const pixels = $("board").clientWidth / grid.width, r = Math.max(0.17, Math.min(0.25, 8 / pixels));
    const inRow = Math.floor(1 / (2 * r)), onCell = new Map();
    return head.agents.map((agent, i) => {
      const cell = D.agent_cell[S.n * I + i], k = onCell.get(cell) ?? 0;
      onCell.set(cell, k + 1);
      const x = (cell % grid.width) + 1 - r * (1 + 2 * (k % inRow)), y = Math.floor(cell / grid.width) + r * (1 + 2 * Math.floor(k / inRow));
      const text = svg("text", {x, y, style: `font-size:${(i < 10 ? 1.5 : 1.15) * r}px;fill:${/red|blue|purple/.test(agent.colour) ? "#fff" : "#111"}`});
      text.textContent = String(i);
      const disc = svg("circle", {cx: x, cy: y, r: 0.9 * r, fill: AGENT_COLOURS[agent.colour] ?? "#fff", stroke: "#111", "stroke-width": 0.16 * r});
      return svg("g", {class: "badge", "data-badge": i}, svg("circle", {cx: x, cy: y, r, fill: "#fff"}), disc, text);
    });
  }

  function outline([x1, y1, x2, y2], style) {
    return svg("rect", {x: x1 + 0.07, y: y1 + 0.07, width: x2 - x1 + 0.86, height: y2 - y1 + 0.86, rx: 0.08, fill: "none", ...style});
  }

  // --- panels ----------------------------------------------------------------------------------------------------------

  function renderTime() {
    const t = D.level[S.n];
    $("slider").value = t;
    $("slider").setAttribute("aria-valuetext", `${stepName(t)} of ${head.level_values[T]}`);
    $("when").textContent = `${stepName(t)[0].toUpperCase()}${stepName(t).slice(1)} of ${head.level_values[T]}`;
    $("earlier").disabled = t === 0;
    $("later").disabled = !D.goes_on[S.n];
    $("back").disabled = !S.past.length;
    const parts = [];
    S.path.forEach((n, i) => {
      if (i) {
        const follows = successorOf(S.path[i - 1], n);
        parts.push(el("span", {title: follows ? "a transition" : "a jump"}, follows ? "→" : "⤳"));
      }
      parts.push(el("button", {type: "button", "aria-current": i === S.at ? "step" : null, "aria-pressed": String(i === S.at),
        "aria-label": `state ${n} at ${stepName(D.level[n])}`, onclick: () => { S.at = i; show(n); }}, String(head.level_values[D.level[n]])));
    });
    $("path").replaceChildren(...parts);
  }

  function successorOf(n, m) {
    for (let l = D.successor_start[n]; l < D.successor_start[n + 1]; l++) if (D.successor[l] === m) return true;
    return false;
  }

  function fact(name, ...what) { return el("div", {}, el("dt", {}, name), el("dd", {}, ...what)); }

  function renderFacts() {
    const n = S.n;
    $("facts").replaceChildren(
      fact("reached with probability", num("reached", D.reached[n], chance)),
      fact("robot's value V_r", num("V_r", D.V_r[n])),
      fact("robot's reward U_r", num("U_r", D.U_r[n])),
      ...head.humans.map((human, h) => fact(`power of ${head.agents[human].name}`, D.goes_on[n] ? num(`X_h ${human}`, D.X_h[n * H + h]) : "–")),
      fact("place in its level", num("place", D.place[n], count)),
      ...(D.goes_on[n] ? [] : [fact("terminal", "the run ends here")]),
    );
    $("words").textContent = grid ? D.words[n] : "";
    $("python").textContent = `solution.at(${D.state[n]})`;
  }

  function bars(rows, ...heads) { // rows: [name, probability, its number, another number or null]
    const grid = el("div", {class: "bars"}, ...heads.map((text) => el("span", {class: "head"}, text)));
    for (const [name, p, number, other] of rows) {
      const fill = el("i");
      fill.style.width = `${100 * p}%`;
      grid.append(el("span", {class: "name"}, name), el("span", {class: "track", "aria-hidden": "true"}, fill), number, other ?? el("span"));
    }
    return grid;
  }

  function renderRobot() {
    const who = head.robots.length === 1 ? head.agents[head.robots[0]].name : head.robots.length ? "The robots" : "Nobody (there is no robot)";
    const parts = [el("h2", {}, `${who[0].toUpperCase()}${who.slice(1)}: what it does`.replace("robots: what it does", "robots: what they do"))];
    if (!D.goes_on[S.n]) parts.push(el("p", {class: "quiet"}, "The run ends here."));
    else {
      const order = head.robot_profiles.map((profile, r) => r);
      if (R > 8) order.sort((a, b) => D.pi_r[S.n * R + b] - D.pi_r[S.n * R + a]);
      const rows = order.map((r) => {
        const key = head.robot_profiles[r].join(" "), p = D.pi_r[S.n * R + r];
        return [actions(head.robot_profiles[r]), p, num(`pi_r ${key}`, p, chance), num(`Q_r ${key}`, D.Q_r[S.n * R + r])];
      });
      const list = bars(rows, "action", "", "probability", "Q_r");
      parts.push(R > 12 ? el("div", {class: "scroll", tabindex: "0"}, list) : list);
    }
    $("robot").replaceChildren(...parts);
  }

  const PYTHON = {"(": "[", ")": "]", ",)": "]", "'": '"', True: "true", False: "false", None: "null"};
  const KINDS = {magicwall: "magic wall", killbutton: "kill button", pauseswitch: "pause switch", controlbutton: "control button"};
  const tuples = (n) => JSON.parse(D.state[n].replace(/,\)|[()']|True|False|None/g, (part) => PYTHON[part])); // as it is shown for Python

  function thingsChanged([, agentsWere, mobileWere, mutableWere], [, agents, mobile, mutable]) {
    const told = [], cells = new Set(), text = JSON.stringify;
    const at = ([, x, y]) => `${x},${y}`, named = ([kind, , , colour]) => colour ? `${colour} ${kind}` : kind;
    const without = (list, others) => list.filter((one) => !others.some((other) => text(other) === text(one)));
    const gone = without(mobileWere, mobile), come = without(mobile, mobileWere);
    const found = (list, name, [ax, ay]) => { // what an agent has in its hands came from, or went to, a cell beside it
      const place = list.findIndex((one) => named(one) === name && Math.abs(one[1] - ax) + Math.abs(one[2] - ay) <= 1);
      if (place < 0) return null;
      cells.add(at(list[place]));
      return at(list.splice(place, 1)[0]);
    };
    const inHands = (one) => one[6] ? `${one[7]} ${one[6]}` : null;
    const changed = agents.map((is, i) => ({is, was: agentsWere[i], who: head.agents[i].name, had: inHands(agentsWere[i]), has: inHands(is)}))
      .filter(({had, has}) => had !== has);
    const lost = changed.filter((one) => one.had).map((one) => ({...one, where: found(come, one.had, one.is)}));
    const got = changed.filter((one) => one.has).map((one) => ({...one, where: found(gone, one.has, one.was)}));
    for (const one of got) {
      const giver = one.where ? -1 : lost.findIndex((other) => !other.where && other.had === one.has); // in one step from hand to hand
      told.push(giver < 0 ? `${one.who} takes the ${one.has}` : `the ${one.has} goes from ${lost.splice(giver, 1)[0].who} to ${one.who}`);
    }
    for (const {who, had, where} of lost) {
      told.push(where ? `${who} drops the ${had} on ${where}` : `${who} has the ${had} no more`);
    }
    agents.forEach((is, i) => {
      const was = agentsWere[i], who = head.agents[i].name;
      if (!was[3] && is[3]) told.push(`${who} is terminated`);
      if (was[5] !== is[5]) told.push(`${who} is ${is[5] ? "paused" : "paused no more"}`);
      if (is[8] !== null && was[8] !== is[8]) told.push(`${who} has to do ${head.actions[is[8]].toLowerCase()} next`);
    });
    for (const name of new Set(gone.map(named))) { // pushed: in the order of cells, each to the one beside it
      const from = gone.filter((one) => named(one) === name), to = come.filter((one) => named(one) === name);
      const beside = (one, k) => Math.abs(one[1] - to[k][1]) + Math.abs(one[2] - to[k][2]) === 1;
      if (from.length !== to.length || !from.every(beside)) continue;
      from.forEach((one, k) => { told.push(`the ${name} at ${at(one)} moves to ${at(to[k])}`); cells.add(at(one)).add(at(to[k])); });
    }
    mutable.forEach((is, k) => {
      const was = mutableWere[k], [kind, , , ...flags] = is, does = [];
      if (text(was) === text(is)) return;
      if (kind === "door") {
        if (was[4] !== flags[1]) does.push(flags[1] ? "locks" : "unlocks");
        if (was[3] !== flags[0]) does.push(flags[0] ? "opens" : "closes");
      } else if (kind === "bush" && flags[0]) does.push("is trampled");
      else if (kind === "magicwall" && !flags[0]) does.push("turns solid");
      else if (kind === "pauseswitch" && was[3] !== flags[0]) does.push(flags[0] ? "goes on" : "goes off");
      told.push(`the ${KINDS[kind] ?? kind} at ${at(is)} ${does.join(" and ") || "changes"}`);
      cells.add(at(is));
    });
    return {told, cells};
  }

  function numbersChanged(before, after) { // a number for each cell, row by row
    const told = [], cells = new Set();
    after.forEach((is, c) => {
      if (is === before[c]) return;
      told.push(`${grid.parts} on ${cellName(c)} from ${before[c]} to ${is}`);
      cells.add(cellName(c));
    });
    return {told, cells};
  }

  function partsChanged(from, to) { // what the world says that its states have beside agents
    if (!grid.parts) return {told: [], cells: new Set()};
    return grid.parts === "things" ? thingsChanged(tuples(from), tuples(to)) : numbersChanged(tuples(from)[2], tuples(to)[2]);
  }

  function changes(from, to) { // in words, as far as the page knows them
    if (!grid) return D.state[to];
    const told = [], moved = new Set();
    for (let i = 0; i < I; i++) {
      const was = D.agent_cell[from * I + i], is = D.agent_cell[to * I + i];
      const turned = D.agent_direction[from * I + i] !== D.agent_direction[to * I + i];
      moved.add(was).add(is);
      if (was !== is || turned) told.push(`${head.agents[i].name} ${was !== is ? `to ${cellName(is)}` : "turns"}${turned ? ` ${ARROWS[D.agent_direction[to * I + i]]}` : ""}`);
    }
    const things = partsChanged(from, to);
    told.push(...things.told);
    const before = cellsOf(from), after = cellsOf(to), other = [];
    after.forEach((sprite, c) => { if (sprite !== before[c] && !moved.has(c) && !things.cells.has(cellName(c))) other.push(cellName(c)); });
    if (other.length) told.push(`changes on ${other.join(" and ")}`);
    return told.length ? told.join(", ") : "nothing changes";
  }

  function moves(list, {here, rest}, name, marks) {
    const shown = S.more ? here : here.slice(0, SHOWN_MOVES), parts = shown.map(([m, p], i) => {
      const key = marks && i < 9 ? `${i + 1} · ` : "";
      const what = el("span", {class: "what"}, el("b", {}, key, num(`${name} ${m}`, p, chance)), changes(S.n, m));
      const thumb = grid ? el("canvas", {"aria-hidden": "true"}) : null;
      if (thumb) {
        const tile = Math.max(3, Math.min(12, Math.floor(104 / grid.width), Math.floor(72 / grid.height)));
        paint(thumb, m, tile * 2);
        thumb.style.width = `${grid.width * tile}px`;
      }
      const button = el("button", {type: "button", "data-state": m, class: marks && i === S.marked ? "marked" : null, onclick: () => walk(m)}, thumb ?? "", what);
      return el("li", {}, button);
    });
    if (shown.length < here.length) {
      const left = here.slice(shown.length);
      parts.push(el("li", {class: "rest"}, el("button", {type: "button", onclick: () => { S.more = true; render(); }},
        `${left.length} more, together ${chance(left.reduce((sum, [, p]) => sum + p, 0))}`)));
    }
    if (rest > 0) parts.push(el("li", {class: "rest"}, "states that are not in this file: ", num(`${name} not embedded`, rest, chance)));
    if (!parts.length) parts.push(el("li", {class: "rest"}, "nothing: the run ends here"));
    $(list).replaceChildren(...parts);
  }

  function likelyPicks(n) {
    const picks = new Array(I).fill(0);
    const best = (array, from, length) => { let at = 0; for (let i = 1; i < length; i++) if (array[from + i] > array[from + at]) at = i; return at; };
    head.humans.forEach((human, h) => { picks[human] = best(D.marginal, (n * H + h) * A, A); });
    const r = best(D.pi_r, n * R, R);
    head.robots.forEach((robot, i) => { picks[robot] = head.robot_profiles[r][i]; });
    return picks;
  }

  function renderJoint() {
    if (!S.picked) S.picks = likelyPicks(S.n); // until somebody picks
    document.querySelectorAll("#picks select").forEach((select, i) => { select.value = String(S.picks[i]); });
    moves("outcomes", D.goes_on[S.n] ? outcomes(S.n, S.picks) : {here: [], rest: 0}, "outcome", false);
  }

  function renderHumans() {
    const scrolled = [...document.querySelectorAll("#humans .scroll")].map((box) => box.scrollTop);
    $("humans").replaceChildren(...head.humans.map((human, h) => {
      const card = el("div", {class: "card human", "data-human": human});
      card.append(el("h2", {}, el("span", {}, swatch(human), head.agents[human].name),
        el("span", {}, "power ", D.goes_on[S.n] ? num(`X_h ${human}`, D.X_h[S.n * H + h]) : "–")));
      if (!D.goes_on[S.n]) { card.append(el("p", {class: "quiet"}, "The run ends here.")); return card; }
      card.append(el("h3", {}, "what it does, over all goals"), bars(head.actions.map((action, a) => {
        const p = D.marginal[(S.n * H + h) * A + a];
        return [action, p, num(`marginal ${human} ${a}`, p, chance), null];
      })));
      card.append(goalTable(human, h));
      if (hasPhase1) card.append(el("div", {class: "key"}, ...head.actions.map((action, a) => el("span", {}, tile(a), action))));
      if (hasPhase1 && h === S.human && head.goals[h][S.goal] && !Number.isNaN(weightOf(h, S.goal))) {
        card.append(el("h3", {}, `what it does for goal ${head.goals[h][S.goal].label}`), bars(head.actions.map((action, a) => {
          const p = D.pi_h[((S.n * H + h) * G + S.goal) * A + a];
          return [action, p, num(`pi_h ${human} ${S.goal} ${a}`, p, chance), null];
        })));
      }
      return card;
    }));
    document.querySelectorAll("#humans .scroll").forEach((box, i) => { box.scrollTop = scrolled[i] ?? 0; });
  }

  function tile(a) { const i = el("i"); i.style.background = colourOf(a); return i; }
  function swatch(agent) {
    const colour = AGENT_COLOURS[head.agents[agent].colour];
    if (!colour) return null;
    const dot = el("span", {class: "swatch", "aria-hidden": "true"});
    dot.style.background = colour;
    return dot;
  }

  function weightOf(h, g, n = S.n) { // NaN where the human does not have the goal
    return D.weight[((shape("weight")[0] > 1 ? n * H : 0) + h) * G + g];
  }

  function goalTable(human, h) {
    const columns = [["weight", (g) => weightOf(h, g)], ...(hasPhase1 ? [[phase1, (g) => D.Vh_m[(S.n * H + h) * G + g]]] : []),
      ["with robot", (g) => D.Vh_e[(S.n * H + h) * G + g]]];
    const names = {weight: "weight", [phase1]: "Vh_m", "with robot": "Vh_e"};
    const goals = head.goals[h].map((goal, g) => g).filter((g) => head.goals[h][g] && !Number.isNaN(weightOf(h, g)));
    const by = columns.find(([name]) => name === S.sorted)?.[1];
    if (by) goals.sort((a, b) => by(b) - by(a) || a - b);
    const titles = columns.map(([name]) => el("th", {scope: "col", "aria-sort": S.sorted === name ? "descending" : null},
      el("button", {type: "button", title: `sort by ${name}`, onclick: () => { S.sorted = S.sorted === name ? null : name; render(); }}, name, S.sorted === name ? " ↓" : "")));
    const rows = goals.map((g) => {
      const goal = head.goals[h][g], attained = D.attained[(S.n * H + h) * G + g];
      const pick = el("button", {type: "button", title: goal.name, "data-goal": g, class: goal.label.length < 9 ? "short" : null, "aria-pressed": String(h === S.human && g === S.goal),
        onclick: () => { S.human = h; S.goal = g; render(); }}, goal.label, attained ? el("span", {title: "attained here", "aria-label": "attained here"}, "\u00a0✓") : "");
      const cells = columns.map(([name, value]) => el("td", {}, num(`${names[name]} ${human} ${g}`, value(g), chance)));
      const row = el("tr", {class: h === S.human && g === S.goal ? "chosen" : null}, el("td", {}, pick), ...cells);
      if (hasPhase1) row.append(el("td", {}, stack(human, h, g)));
      return row;
    });
    const top = el("tr", {}, el("th", {scope: "col"}, "goal"), ...titles, hasPhase1 ? el("th", {scope: "col"}, "actions") : null);
    return el("div", {class: "scroll"}, el("table", {}, el("thead", {}, top), el("tbody", {}, ...rows)));
  }

  function stack(human, h, g) {
    const from = ((S.n * H + h) * G + g) * A, values = head.actions.map((_, a) => D.pi_h[from + a]);
    const told = values.map((p, a) => `${head.actions[a]} ${chance(p)}`).join(", ");
    const box = el("span", {class: "stack", role: "img", "aria-label": told, title: told, "data-name": `actions ${human} ${g}`, "data-value": values.join(" ")});
    values.forEach((p, a) => { const part = tile(a); part.style.width = `${100 * p}%`; box.append(part); });
    return box;
  }

  function option(value, text) { return el("option", {value}, text); }

  function renderView() {
    $("agents").replaceChildren(...head.agents.map((agent, i) => el("button", {type: "button", "aria-pressed": String(i === S.agent),
      "data-agent": i, onclick: () => { S.agent = i; render(); }}, swatch(i), agent.name)));
    if (!grid) return;
    const name = head.agents[S.agent].name, t = D.level[S.n], cells = grid.width * grid.height;
    $("click-hint").textContent = `Click a cell to see ${name} there at this step.`;
    const here = new Set(onLevel(t).map((m) => D.agent_cell[m * I + S.agent]));
    const mass = (c) => D.cell_reached[(t * I + S.agent) * cells + c];
    $("cell").replaceChildren(...[...here].sort((a, b) => mass(b) - mass(a) || a - b).map((c) => option(c, `${cellName(c)} · ${chance(mass(c))}`)));
    $("cell").value = String(D.agent_cell[S.n * I + S.agent]);
    $("overlay").replaceChildren(...Object.keys(OVERLAYS).map((key) => option(key, overlayName(key))));
    $("overlay").value = S.overlay;
    $("whose").value = String(S.human);
  }

  // --- charts ----------------------------------------------------------------------------------------------------------

  const WIDE = 330, HIGH = 150, LEFT = 54, RIGHT = 8, TOP = 8, BOTTOM = 22;
  const xOf = (t) => LEFT + (T ? t / T : 0.5) * (WIDE - LEFT - RIGHT);
  const column = (name, width, k) => Array.from({length: T + 1}, (_, t) => D[name][t * width + k]);

  function chartList() {
    const q = head.quantiles, M = 1 + q.length, band = `mean, and from the ${100 * q[0]}% to the ${100 * q[q.length - 1]}% quantile`;
    return [
      {title: "Power of the humans", note: band, series: head.humans.map((human, h) => ({name: head.agents[human].name, key: `X_h ${human}`,
        values: column("level_X_h", M * H, h), low: column("level_X_h", M * H, H + h), high: column("level_X_h", M * H, q.length * H + h)}))},
      {title: "The robot's value V_r", note: band, scale: "negative", series: [{name: "V_r", key: "V_r",
        values: column("level_V_r", M, 0), low: column("level_V_r", M, 1), high: column("level_V_r", M, q.length)}]},
      {title: "Entropy of the robot's policy", note: "nats, mean", zero: true, series: [{name: "entropy", key: "entropy", values: [...D.level_entropy]}]},
      {title: "Number of states", note: "log scale", scale: "log", how: count, series: [{name: "all", key: "states", values: [...D.level_states]},
        {name: "can come about", key: "reached", values: [...D.level_reached]}, {name: "in this file", key: "embedded", values: [...D.level_embedded]}]},
      {title: "Probability of the states in this file", note: "of all that may happen at a step", top: 1, zero: true, how: chance,
        series: [{name: "in this file", key: "embedded mass", values: [...D.level_embedded_mass]}]},
    ];
  }

  function drawChart(spec) {
    const scale = spec.scale === "log" ? Math.log10 : spec.scale === "negative" ? (v) => -Math.log10(-v) : (v) => v;
    const inverse = spec.scale === "log" ? (s) => 10 ** s : spec.scale === "negative" ? (s) => -(10 ** -s) : (s) => s;
    const all = spec.series.flatMap((one) => [...one.values, ...(one.low ?? []), ...(one.high ?? [])]).map(scale).filter(Number.isFinite);
    let low = spec.zero ? 0 : Math.min(...all), high = spec.top ?? Math.max(...all, spec.zero ? 1e-9 : -Infinity);
    if (!all.length) { low = 0; high = 1; } // a level of terminal states has nothing to show
    if (!(high > low)) { low -= 0.5; high += 0.5; }
    const yOf = (s) => TOP + (1 - (s - low) / (high - low)) * (HIGH - TOP - BOTTOM);
    const drawing = svg("svg", {viewBox: `0 0 ${WIDE} ${HIGH}`, role: "img", "aria-label": `${spec.title} by step`});
    for (const share of [0, 0.5, 1]) {
      const s = low + share * (high - low);
      const label = svg("text", {x: LEFT - 5, y: yOf(s) + 4, "text-anchor": "end"});
      label.textContent = signed(format(Number(inverse(s).toPrecision(2))));
      drawing.append(svg("path", {class: "axis", d: `M${LEFT} ${yOf(s)}H${WIDE - RIGHT}`}), label);
    }
    const every = Math.max(1, Math.ceil(T / 8));
    for (let t = 0; t <= T; t += every) {
      const label = svg("text", {x: xOf(t), y: HIGH - 6, "text-anchor": "middle"});
      label.textContent = String(head.level_values[t]);
      drawing.append(label);
    }
    spec.series.forEach((one, k) => {
      const style = `fill:${colourOf(k)}`, points = (values) => values.map((v, t) => [xOf(t), yOf(scale(v))]).filter(([, y]) => Number.isFinite(y));
      const join = (list) => list.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
      if (one.low) {
        const upper = points(one.high), lower = points(one.low).reverse();
        if (upper.length) drawing.append(svg("path", {d: `M${join([...upper, ...lower])}Z`, style, opacity: 0.16}));
      }
      const line = points(one.values);
      if (line.length) drawing.append(svg("path", {d: `M${join(line)}`, style: `fill:none;stroke:${colourOf(k)}`, "stroke-width": 2, "stroke-dasharray": ["none", "7 3", "2 3"][k % 3]}));
      if (line.length < 40) for (const [cx, cy] of line) drawing.append(svg("circle", {cx, cy, r: 2, style}));
    });
    const cursor = svg("path", {class: "cursor", d: ""});
    drawing.append(cursor);
    drawing.addEventListener("click", (event) => {
      const box = drawing.getBoundingClientRect(), x = ((event.clientX - box.left) / box.width) * WIDE;
      play(false);
      toLevel(Math.max(0, Math.min(T, Math.round(((x - LEFT) / (WIDE - LEFT - RIGHT)) * T))));
    });
    const now = el("div", {class: "now"});
    const caption = el("figcaption", {}, spec.title, " ", el("span", {class: "quiet"}, spec.note));
    $("charts").append(el("figure", {class: "chart card"}, caption, now, drawing));
    return () => {
      const t = D.level[S.n];
      cursor.setAttribute("d", `M${xOf(t)} ${TOP}V${HIGH - BOTTOM}`);
      const how = spec.how ?? format;
      now.replaceChildren(...spec.series.flatMap((one, k) => [k ? "; " : "", tile(k), ` ${one.name} `, num(`level ${one.key}`, one.values[t], how),
        ...(one.low && !Number.isNaN(one.low[t]) ? [" (", num(`level ${one.key} low`, one.low[t], how), " to ", num(`level ${one.key} high`, one.high[t], how), ")"] : [])]));
    };
  }

  // --- once ------------------------------------------------------------------------------------------------------------

  function pairs(list, values, how = String) {
    $(list).replaceChildren(...Object.entries(values).flatMap(([name, value]) => [el("dt", {}, name), el("dd", {"data-name": name, "data-value": String(value)}, how(value))]));
  }

  function begin() {
    const params = {...head.params};
    for (const who of ["h", "r"]) params[`gamma_${who}`] = Math.exp(-params[`rho_${who}`]);
    pairs("params", params, (v) => typeof v === "number" ? signed(format(v)) : v === true ? "yes" : v === false ? "no" : String(v));
    pairs("sizes", {...head.sizes, ...head.versions, precision: head.precision}, (v) => typeof v === "number" ? count(v) : String(v));
    const e = head.embedded;
    $("left-out").textContent = `Of ${count(e.reached)} states that both policies can come to, this file has ${count(e.states)}: those with a probability of at least `
      + `${e.min_probability}, at most ${count(e.max_states)} of them, and of each its likeliest successor. ${count(e.left_out)} ${e.left_out === 1 ? "is" : "are"} left out. `
      + (e.left_out ? `At the step where that matters most, the states in this file have ${chance(e.smallest_mass)} of the probability. ` : "")
      + "Charts, and where agents are at a step, are of all states.";
    const row = (kind, ...cells) => el("tr", {}, ...cells.map((cell) => el(kind, {}, cell)));
    const body = Array.from({length: T + 1}, (_, t) => row("td", String(head.level_values[t]), count(D.level_states[t]), count(D.level_reached[t]), count(D.level_embedded[t]),
      num(`left out mass ${t}`, Math.max(0, D.level_mass[t] - D.level_embedded_mass[t]), (p) => p < 1e-12 ? "0" : chance(p))));
    $("left-out-table").append(el("thead", {}, row("th", grid ? "step" : "level", "states", "can come about", "in this file", "probability left out")), el("tbody", {}, ...body));
    $("levels-note").textContent = "Weighted by how likely both policies come to each state; over states that go on. Click a chart to go to a step.";
    $("phase1-name").textContent = phase1;
    $("phase1-help").textContent = head.optimistic ? "if the robot did all it can to help with this goal (phase 1, optimistic)"
      : "if the robot did all it can to prevent this goal (phase 1)";
    $("slider").max = T;
    document.querySelector("#levels h2").textContent = grid ? "By step" : "By level";
    $("view").hidden = !grid;
    if (grid) {
      $("board").addEventListener("click", (event) => {
        const box = $("board").getBoundingClientRect();
        const x = Math.floor(((event.clientX - box.left) / box.width) * grid.width), y = Math.floor(((event.clientY - box.top) / box.height) * grid.height);
        if (x >= 0 && y >= 0 && x < grid.width && y < grid.height) clicked(y * grid.width + x);
      });
      $("cell").addEventListener("change", (event) => toCell(Number(event.target.value)));
      $("overlay").addEventListener("change", (event) => { S.overlay = event.target.value; render(); });
      $("outlines").addEventListener("change", (event) => { S.outlines = event.target.checked; render(); });
      $("whose").replaceChildren(...head.humans.map((human, h) => option(h, head.agents[human].name)));
      $("whose").addEventListener("change", (event) => { S.human = Number(event.target.value); S.goal = 0; render(); });
    }
    $("picks").replaceChildren(...head.agents.map((agent, i) => el("label", {}, agent.name,
      el("select", {"data-agent": i, onchange: (event) => { S.picked = true; S.picks[i] = Number(event.target.value); render(); }}, ...head.actions.map((action, a) => option(a, action))))));
    S.goal = head.goals[0]?.reduce((best, goal, g) => goal && !D.attained[g] && (D.attained[best] || D.Vh_e[g] > D.Vh_e[best]) ? g : best, 0) ?? 0;
    $("slider").addEventListener("input", (event) => { play(false); toLevel(Number(event.target.value)); });
    $("first").addEventListener("click", () => { play(false); jump(0); });
    $("earlier").addEventListener("click", () => { play(false); earlier(); });
    $("later").addEventListener("click", () => { play(false); later(); });
    $("back").addEventListener("click", () => { play(false); back(); });
    $("likeliest").addEventListener("click", () => { play(false); jump(levelStart[D.level[S.n]]); });
    $("play").addEventListener("click", () => play(S.timer === null));
    $("theme").addEventListener("click", () => {
      const isDark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      document.documentElement.dataset.theme = isDark ? "light" : "dark";
    });
    $("help-open").addEventListener("click", () => $("help").showModal());
    document.addEventListener("keydown", pressed);
    addEventListener("hashchange", () => {
      const n = fromHash();
      if (n !== null && n !== S.n) jump(n);
      else if (n === null) missing();
    });
    if (grid) addEventListener("resize", renderBoard); // badges keep their size
  }

  function pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox" && /^Arrow|^Home|^\d$/.test(event.key)) return;
    const {here} = successors(S.n);
    const mark = (step) => { if (here.length) { S.marked = (S.marked + step + here.length) % here.length; if (S.marked >= SHOWN_MOVES) S.more = true; render(); } };
    const does = {ArrowRight: later, ArrowLeft: earlier, ArrowDown: () => mark(1), ArrowUp: () => mark(-1), Home: () => jump(0), Backspace: back,
      "?": () => $("help").showModal(), p: () => { play(S.timer === null); }}[event.key];
    if (does) { if (event.key !== "p") play(false); event.preventDefault(); does(); }
    else if (/^[1-9]$/.test(event.key) && here[Number(event.key) - 1]) { play(false); event.preventDefault(); walk(here[Number(event.key) - 1][0]); }
  }

  function fromHash() {
    const found = /^#s=(\d+)$/.exec(location.hash);
    return found && Number(found[1]) < N ? Number(found[1]) : null;
  }

  function address() { // of the state that is shown; inside a notebook the page has none
    try { history.replaceState(null, "", `#s=${S.n}`); } catch { /* a frame without an address of its own */ }
  }

  function missing(link = location.hash) { // a link to a state that is not here: say so, and show the address of what is shown
    const [, asked] = /^#s=(.*)$/.exec(link) ?? [];
    if (asked === undefined) return;
    address();
    $("status").textContent = `State ${asked} of the link is not in this file, which has states 0 to ${N - 1}. This is state ${S.n}.`;
  }

  let charts = [];
  function render() {
    const focused = focusKey();
    renderBoard();
    renderTime();
    renderFacts();
    renderRobot();
    moves("successors", successors(S.n), "successor", true);
    renderJoint();
    renderHumans();
    renderView();
    charts.forEach((update) => update());
    document.documentElement.dataset.state = S.n;
    if (location.hash !== `#s=${S.n}`) address();
    refocus(focused);
  }

  function focusKey() { // what was pressed is made anew: keep the focus where it was
    const now = document.activeElement, list = now?.closest("#successors, #outcomes, #agents, #path, #humans");
    if (!list) return null;
    return [list.id, [...list.querySelectorAll("button")].indexOf(now)];
  }

  function refocus(key) {
    if (!key || key[1] < 0) return;
    const found = $(key[0]).querySelectorAll("button");
    found[Math.min(key[1], found.length - 1)]?.focus({preventScroll: true});
  }

  begin();
  $("first-map")?.remove(); // the canvas takes its place, in the same frame
  $("main").classList.remove("waiting");
  charts = chartList().map(drawChart);
  const start = fromHash(), link = location.hash;
  if (start !== null && start !== 0) jump(start);
  else render();
  if (start === null) missing(link);
  document.documentElement.dataset.ready = "yes";
})();
