"""What a section of the benchmarks finds: tables, curves and figures that were wanted; as text, Markdown and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Table:
    """Rows of texts under the names of columns. The first column is a name, the others are numbers."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list)
    note: str = ""

    def row(self, *cells: str) -> None:
        if len(cells) != len(self.columns):
            raise ValueError(f"{len(cells)} cells for {len(self.columns)} columns: {cells}")
        self.rows.append(cells)

    def text(self) -> str:
        lines = [self.columns, *self.rows]
        widths = [max(len(line[c]) for line in lines) for c in range(len(self.columns))]
        texts = [
            "  ".join(f"{cell:{'<' if c == 0 else '>'}{widths[c]}}" for c, cell in enumerate(line)).rstrip()
            for line in lines
        ]
        rule = "-" * max(map(len, texts))
        return "\n".join([self.title, "", texts[0], rule, *texts[1:], *(["", self.note] if self.note else [])])

    def markdown(self) -> str:
        aligned = [":---", *["---:"] * (len(self.columns) - 1)]
        lines = [" | ".join(line) for line in (self.columns, aligned, *self.rows)]
        return "\n".join(
            [f"**{self.title}**", "", *(f"| {line} |" for line in lines), *(["", self.note] if self.note else [])]
        )


@dataclass(frozen=True)
class Wanted:
    """A figure that the project asks for: at least, or at most, so much. ``measured`` is None where it could not be."""

    what: str
    measured: float | None
    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"
    why: str = ""  # it was not reached, or not measured

    @property
    def is_met(self) -> bool:
        if self.measured is None:
            return False
        return (self.at_least is None or self.measured >= self.at_least) and (
            self.at_most is None or self.measured <= self.at_most
        )

    @property
    def bound(self) -> str:
        limit = self.at_most if self.at_least is None else self.at_least
        return f"{'at most' if self.at_least is None else 'at least'} {limit:g}{self.unit}"

    @property
    def verdict(self) -> str:
        return "met" if self.is_met else "NOT MEASURED" if self.measured is None else "NOT MET"


@dataclass(frozen=True)
class Curve:
    """Points of one line of a plot; several curves of the same ``plot`` and ``y_label`` share axes."""

    plot: str  # what is varied, also the name of the file
    x_label: str
    y_label: str
    name: str
    x: Sequence[float]
    y: Sequence[float]
    exponent: float | None = None  # of the power law that fits best, shown beside the name


@dataclass
class Section:
    """One room of the report.

    Attributes
    ----------
    name, title : the module's name, and a heading
    about : what is compared and how, in Markdown, a paragraph each
    missing : what could not be measured, and what to do about it
    figures : numbers by name, for whoever reads the JSON
    """

    name: str
    title: str
    about: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    wanted: list[Wanted] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    others: float = 0.0  # cores that others used meanwhile

    def table(self, title: str, *columns: str, note: str = "") -> Table:
        self.tables.append(Table(title, columns, note=note))
        return self.tables[-1]

    def want(self, what: str, measured: float | None, **bounds: Any) -> None:
        """Note a figure that was wanted; see :class:`Wanted`."""
        self.wanted.append(Wanted(what, measured, **bounds))

    def text(self, *, verdicts: bool = True) -> str:
        parts = [f"{self.title}\n{'=' * len(self.title)}", *(table.text() for table in self.tables)]
        if self.wanted and verdicts:
            parts.append(wanted_table(self.wanted).text())
        parts += [f"Not measured: {message}" for message in self.missing]
        parts.append(f"{self.seconds:.0f} s; others used {self.others:.2f} cores meanwhile")
        return "\n\n".join(parts) + "\n"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Section:
        parts = {"tables": Table, "wanted": Wanted, "curves": Curve}
        return cls(**{key: [parts[key](**one) for one in value] if key in parts else value for key, value in found.items()})


def wanted_table(wanted: Sequence[Wanted]) -> Table:
    table = Table("Wanted", ["figure", "measured", "wanted", ""])
    for one in wanted:
        number = "" if one.measured is None else f"{one.measured:,.0f}" if one.measured >= 1000 else f"{one.measured:.3g}"
        measured = f"{number}{one.unit}" if number else "–"
        table.row(one.what, measured, one.bound, one.verdict)
    return table
