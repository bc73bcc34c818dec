"use strict";
// All of the page can be read without this: tables become sortable, and pictures can be enlarged.

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((cell, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...cell.childNodes);
    cell.append(button);
    button.addEventListener("click", () => {
      const upwards = cell.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", upwards ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
      const rows = [...body.rows].map((row) => [key(row), row]);
      const numeric = rows.every(([value]) => value === "" || !Number.isNaN(Number(value)));
      rows.sort(([a], [b]) => {
        if (a === "" || b === "") return (a === "") - (b === "");
        const order = numeric ? Number(a) - Number(b) : a.localeCompare(b, undefined, { numeric: true });
        return upwards ? order : -order;
      });
      body.append(...rows.map(([, row]) => row));
    });
  });
}

const dialog = document.createElement("dialog");
dialog.className = "enlarged";
const close = document.createElement("button");
close.type = "button";
close.className = "close";
close.textContent = "Close";
close.addEventListener("click", () => dialog.close());
dialog.append(close);
document.body.append(dialog);

let putBack = () => {};
dialog.addEventListener("close", () => putBack());
dialog.addEventListener("click", (event) => {
  if (event.target === dialog) dialog.close();
});

for (const holder of document.querySelectorAll(".picture")) {
  const picture = holder.querySelector("svg");
  if (!picture) continue;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "enlarge";
  button.setAttribute("aria-label", `Enlarge: ${picture.getAttribute("aria-label")}`);
  button.textContent = "⤢";
  holder.append(button);
  const enlarge = () => {
    dialog.style.cssText = holder.parentElement.style.cssText; // its size
    dialog.setAttribute("aria-label", picture.getAttribute("aria-label"));
    holder.style.minHeight = `${holder.offsetHeight}px`; // the page behind does not move
    putBack = () => {
      holder.prepend(picture);
      holder.style.minHeight = "";
      putBack = () => {};
    };
    dialog.append(picture);
    dialog.showModal();
  };
  button.addEventListener("click", enlarge);
  picture.addEventListener("click", () => {
    if (!dialog.open) enlarge();
  });
}
document.documentElement.classList.add("scripted");
