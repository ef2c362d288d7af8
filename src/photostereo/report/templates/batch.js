// Sort the captures by a column: numbers as numbers, what has no value last.
(() => {
  /** @type {HTMLTableSectionElement} */
  const body = document.querySelector("#captures tbody");
  const heads = [...document.querySelectorAll("#captures th")];
  const compare = (a, b) => {
    if (a === "" || b === "") return Number(a === "") - Number(b === "");
    const numbers = [Number(a), Number(b)];
    return numbers.some(Number.isNaN)
      ? a.localeCompare(b, undefined, { numeric: true })
      : numbers[0] - numbers[1];
  };
  const sort = (head, column) => {
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of heads) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...body.rows].sort((a, b) => {
      const order = compare(value(a), value(b));
      return down && value(a) !== "" && value(b) !== "" ? -order : order;
    });
    body.append(...rows);
  };
  for (const [column, head] of heads.entries()) {
    head.querySelector("button")?.addEventListener("click", () => sort(head, column));
  }
})();
