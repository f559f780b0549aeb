// Sends each dropped or chosen file in a request of its own, so that one failing leaves the others whole.
"use strict";
(() => {
  const form = document.getElementById("upload-form");
  if (!form) return;
  const AT_ONCE = 2;
  const list = document.getElementById("upload-list");
  const zone = document.getElementById("drop-zone");
  const input = form.querySelector("input[type=file]");
  const fault = document.getElementById("upload-error");
  const words = form.dataset;
  const queue = [];
  let running = 0;

  form.querySelector("[data-without-script]").hidden = true;
  zone.classList.add("kb-scripted");
  input.hasChangeListener = true; // the theme would look for a text field beside it

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text) made.textContent = text;
    return made;
  }

  function addRow(file) {
    const row = element("li", "kb-upload");
    const head = element("div", "kb-row");
    const name = element("strong", "kb-name", file.name);
    const note = element("span", "kb-note", words.textWaiting);
    const bar = element("progress", "kb-progress");
    bar.max = 100;
    bar.value = 0;
    head.append(name, note);
    row.append(head, bar);
    list.prepend(row);
    return { file, row, head, name, note, bar };
  }

  function fail(item, message, again) {
    item.bar.remove();
    item.note.textContent = "";
    const error = element("div", "kb-error", message);
    item.row.append(error);
    if (!again) return;
    const button = element("button", "kb-button", words.textRetry);
    button.type = "button";
    button.addEventListener("click", () => {
      error.remove();
      button.remove();
      item.bar.value = 0;
      item.row.append(item.bar);
      item.note.textContent = words.textWaiting;
      queue.push(item);
      next();
    });
    item.row.append(button);
  }

  function succeed(item, answer) {
    item.bar.remove();
    item.note.textContent = answer.message;
    const link = element("a", "kb-link", item.file.name);
    link.href = answer.url;
    item.name.replaceChildren(link);
    const state = element("div", "kb-state");
    state.dataset.documentState = answer.id;
    if (answer.changing) state.setAttribute("data-changing", "");
    state.innerHTML = answer.html; // rendered and escaped by the server
    item.row.append(state);
  }

  function settle(item, request) {
    let answer = null;
    try {
      answer = JSON.parse(request.responseText);
    } catch {
      // Not from our view: a proxy or a login page.
    }
    if (request.status === 200 && answer?.id) succeed(item, answer);
    else if (answer?.error) fail(item, answer.error, false);
    else fail(item, words.textServer, true);
  }

  function send(item) {
    const body = new FormData(form);
    body.delete("file");
    body.append("file", item.file, item.file.name);
    const request = new XMLHttpRequest(); // fetch does not tell how much was sent
    request.open("POST", form.action || window.location.href);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) item.bar.value = (100 * event.loaded) / event.total;
    });
    request.addEventListener("load", () => settle(item, request));
    request.addEventListener("error", () => fail(item, words.textNetwork, true));
    request.addEventListener("loadend", () => {
      running -= 1;
      next();
    });
    item.note.textContent = words.textSending;
    request.send(body);
  }

  function next() {
    while (running < AT_ONCE && queue.length) {
      running += 1;
      send(queue.shift());
    }
  }

  function take(files) {
    fault.hidden = Boolean(form.elements.base.value);
    if (!form.elements.base.value) {
      fault.textContent = words.textNoBase;
      form.elements.base.focus();
      return;
    }
    for (const file of files) {
      const item = addRow(file);
      if (file.size > Number(words.maxBytes)) fail(item, words.textTooLarge, false);
      else queue.push(item);
    }
    next();
  }

  input.addEventListener("change", () => {
    take([...input.files]);
    input.value = "";
  });
  for (const kind of ["dragenter", "dragover"]) {
    zone.addEventListener(kind, (event) => {
      event.preventDefault();
      zone.classList.add("kb-over");
    });
  }
  for (const kind of ["dragleave", "drop"]) {
    zone.addEventListener(kind, () => zone.classList.remove("kb-over"));
  }
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    take([...event.dataTransfer.files]);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("beforeunload", (event) => {
    if (running || queue.length) event.preventDefault();
  });
})();
