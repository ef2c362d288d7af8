"""``index.md``: every run of a results folder on one page, and the paper's claims checked."""

from __future__ import annotations

from pathlib import Path

from photostereo.batch.progress import SILENT_RUN, RunControl
from photostereo.io.atomic import write_text
from photostereo.lab.paper.claims import check_claims, claims_table
from photostereo.lab.paper.runs import NAMED_RUNS
from photostereo.lab.sweeps.store import Store
from photostereo.lab.sweeps.tables import Table


def write_index(store: Store, control: RunControl = SILENT_RUN) -> Path:
    """One page from the pages of the runs, in the paper's order, with the claims at its head."""
    parts = ["# The paper's experiments\n"]
    claims = check_claims(store)
    if claims:
        header, rows = claims_table(claims)
        table = Table("The paper's claims, on these results", tuple(header), tuple(map(tuple, rows)))
        table.write(store.folder, "claims")
        parts.append(table.markdown())
        control.table(table.title, header, rows)
    pages = [store.folder / name / "page.md" for name in NAMED_RUNS]
    parts += [page.read_text(encoding="utf-8") for page in pages if page.exists()]
    path = store.folder / "index.md"
    write_text(path, "\n".join(parts))
    return path
