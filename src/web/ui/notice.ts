// What the page says by itself: notices that go, and questions that wait for an answer.

import { ApiError } from "../api";
import { button, h, type Child } from "../dom";

const place = h("div.notices", { role: "status", "aria-live": "polite" });

export function noticePlace(): HTMLElement {
  return place;
}

/** A sentence for some seconds; `undo` makes it a little longer, with a button. */
export function notice(text: string, kind = "", undo?: () => void): void {
  const end = () => line.remove();
  const line: HTMLElement = h(`div.notice${kind ? "." + kind : ""}`, {}, h("span", {}, text),
    undo && h("button", { type: "button", onclick: () => { end(); undo(); } }, "Undo"),
    button("cross", "Close", end));
  place.append(line);
  setTimeout(end, undo ? 12000 : kind === "bad" ? 10000 : 5000);
}

export function sentence(error: unknown): string {
  if (error instanceof ApiError) return error.requestId ? `${error.message} (request ${error.requestId})` : error.message;
  return error instanceof Error ? error.message : String(error);
}

/** Do something and say so when it fails. True when it did not. */
export async function attempt(act: () => Promise<unknown>, done = ""): Promise<boolean> {
  try {
    await act();
    if (done) notice(done, "good");
    return true;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) notice(sentence(error), "bad");
    return false;
  }
}

/** A dialog over the page. It closes by Escape and by its buttons; what was typed stays while it fails. */
export function dialog(title: string, content: Child, actions: { word: string; kind?: string; act?: () => Promise<unknown> | void }[]): HTMLDialogElement {
  const problem = h("p.problem", { role: "alert" });
  const box = h<HTMLDialogElement>("dialog", { "aria-label": title });
  const run = async (act?: () => Promise<unknown> | void) => {
    problem.textContent = "";
    try {
      await act?.();
      box.close();
    } catch (error) {
      problem.textContent = sentence(error);
    }
  };
  const first = actions.find((action) => action.kind === "primary" || action.kind === "danger");
  const form = h("form", { method: "dialog", onsubmit: (event: Event) => { event.preventDefault(); void run(first?.act); } },
    h("h2", {}, title), content, problem,
    h("div.actions", {}, actions.map((action) => h(`button${action.kind ? "." + action.kind : ""}`,
      action === first ? { type: "submit" } : { type: "button", onclick: () => void run(action.act) }, action.word))));
  box.append(form);
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

export function confirmThen(title: string, text: string, word: string, act: () => Promise<unknown>): void {
  dialog(title, h("p", {}, text), [{ word: "Cancel" }, { word, kind: "danger", act }]);
}
