"""Random small worlds over all object kinds, as mappings that any implementation can load."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

TERRAIN = [*[".."] * 12, "We", "Bl", "Bl", "Ro", "Un", "Un", "Bu", "La", "Sw", "Gg", "Lr", "Cr", "Or"]
ITEMS = ["Kr", "Kg", "By", "Xb", "Xb"]
OPERATED = ["Ki", "Pa", "dK", "dP", "dC", "CB", "Mn", "Mw", "Ma"]
CODES = [*TERRAIN, *ITEMS, *OPERATED]
PROBABILITIES = st.sampled_from([0, 0.3, 0.7, 1])


@st.composite
def random_worlds(draw: st.DrawFn, max_agents: int = 3, max_steps: int = 1000) -> dict[str, Any]:
    """A map of up to 5 x 4 cells, open at the edges, with up to ``max_agents`` agents of three colours."""
    width, height = draw(st.integers(3, 5)), draw(st.integers(3, 4))
    codes = [[draw(st.sampled_from(CODES)) for _ in range(width)] for _ in range(height)]
    cells = draw(st.permutations([(x, y) for x in range(width) for y in range(height)]))
    agents = draw(st.lists(st.sampled_from(["Ay", "Ae", "Ar"]), max_size=max_agents))
    for (x, y), code in zip(cells, agents, strict=False):
        codes[y][x] = code
    return {
        "map": codes,
        "max_steps": max_steps,
        "orientations": draw(st.lists(st.sampled_from("eswn"), max_size=max_agents)),
        "action_class": draw(st.sampled_from(["ObjectActions"] * 5 + ["SmallActions", "MinimalActions", "MineActions"])),
        "can_push_rocks": draw(st.sampled_from(["", "e", "ye"])),
        "can_enter_magic_walls": draw(st.sampled_from(["", "e", "yer"])),
        "stumble_probability": draw(PROBABILITIES),
        "solidify_probability": draw(PROBABILITIES),
        "enter_bush_success_prob": draw(PROBABILITIES),
    }
