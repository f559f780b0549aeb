// Shows a document's text and marks the chunk that was chosen.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const section = document.getElementById("reading");
  const data = document.getElementById("document-text-data");
  if (!section || !data) return;
  const target = document.getElementById("document-text");
  // Offsets count characters; JavaScript's strings count UTF-16 units.
  const characters = Array.from(JSON.parse(data.textContent));
  const first = Number(section.dataset.first);
  target.textContent = characters.join("");

  function within(offset) {
    return Math.min(Math.max(offset - first, 0), characters.length);
  }

  function mark(chunk) {
    const start = within(Number(chunk.dataset.start));
    const end = within(Number(chunk.dataset.end));
    const marked = document.createElement("mark");
    marked.textContent = characters.slice(start, end).join("");
    target.replaceChildren(
      characters.slice(0, start).join(""),
      marked,
      characters.slice(end).join(""),
    );
    target.scrollTop += marked.getBoundingClientRect().top - target.getBoundingClientRect().top - 24;
    section.querySelectorAll(".kb-chosen").forEach((other) => other.classList.remove("kb-chosen"));
    chunk.classList.add("kb-chosen");
  }

  for (const chunk of section.querySelectorAll("[data-chunk]")) {
    chunk.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      if (link && !link.hasAttribute("data-show")) return;
      event.preventDefault();
      mark(chunk);
    });
  }
  const chosen = section.dataset.chosen && document.getElementById(`chunk-${section.dataset.chosen}`);
  if (chosen) {
    mark(chosen);
    const list = chosen.parentElement;
    list.scrollTop += chosen.getBoundingClientRect().top - list.getBoundingClientRect().top - 24;
    section.scrollIntoView();
  }
});
