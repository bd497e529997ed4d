// The door: a key, an account, or the one-time link of the first start.

import { ApiError, fetchGood, get, useKey } from "../api";
import { h, replace } from "../dom";
import { field, textInput } from "../ui/form";
import { sentence } from "../ui/notice";

type Done = () => void;

function door(title: string, text: string, inputs: HTMLElement[], word: string, act: () => Promise<void>, done: Done, more: HTMLElement | null = null): HTMLElement {
  const problem = h("p.problem", { role: "alert" });
  const submit = h<HTMLButtonElement>("button.primary", { type: "submit" }, word);
  const form = h("form.door", {
    onsubmit: async (event: Event) => {
      event.preventDefault();
      problem.textContent = "";
      submit.disabled = true;
      try {
        await act();
        done();
      } catch (error) {
        problem.textContent = sentence(error);
      }
      submit.disabled = false;
    },
  }, h("h1.mark", {}, "Burrow"), h("h2", {}, title), h("p", {}, text), inputs, problem, submit, more);
  return form;
}

/** A key is tried before it is kept. */
async function tryKey(key: string): Promise<void> {
  useKey(key.trim());
  try {
    await get("/whoami");
  } catch (error) {
    useKey("");
    if (error instanceof ApiError && error.status === 401) throw new Error("This key is not known here. It may have expired or been revoked.");
    throw error;
  }
}

async function signIn(email: string, password: string): Promise<void> {
  useKey("");
  await fetchGood("/api/auth/sign-in/email", { method: "POST", body: { email, password }, bearer: "" });
}

async function signUp(token: string, name: string, email: string, password: string): Promise<void> {
  await fetchGood("/api/auth/sign-up/email", { method: "POST", body: { name, email, password }, bearer: token });
  await signIn(email, password);
}

export async function signOut(): Promise<void> {
  useKey("");
  await fetchGood("/api/auth/sign-out", { method: "POST", body: {}, bearer: "" }).catch(() => {});
}

function keyDoor(done: Done, change: () => void): HTMLElement {
  const key = textInput("", { type: "password", name: "key", autocomplete: "current-password", required: true, autofocus: true });
  return door("Sign in", "With a key of this Burrow. The administrator's is in the daemon's data folder: daemon/keys/admin.",
    [field("Key", key)], "Sign in", () => tryKey(key.value), done, h("button.link", { type: "button", onclick: change }, "Sign in with an account instead"));
}

function accountDoor(done: Done, change: () => void): HTMLElement {
  const email = textInput("", { type: "email", name: "email", autocomplete: "username", required: true });
  const password = textInput("", { type: "password", name: "password", autocomplete: "current-password", required: true });
  return door("Sign in", "With your account.", [field("Email", email), field("Password", password)], "Sign in",
    () => signIn(email.value, password.value), done, h("button.link", { type: "button", onclick: change }, "Sign in with a key instead"));
}

function firstDoor(token: string, done: Done): HTMLElement {
  const name = textInput("", { name: "name", autocomplete: "name", required: true });
  const email = textInput("", { type: "email", name: "email", autocomplete: "username", required: true });
  const password = textInput("", { type: "password", name: "password", autocomplete: "new-password", required: true, minlength: 8 });
  return door("Welcome", "This link makes the first account, the administrator's. It works once.",
    [field("Name", name), field("Email", email), field("Password", password, "At least 8 characters")], "Make the account",
    () => signUp(token, name.value, email.value, password.value), done);
}

/** Show the door that fits; `done` when somebody is in. */
export function showDoor(place: HTMLElement, done: Done): void {
  const first = new URLSearchParams(location.hash.replace(/^#\/?\??/, "")).get("first");
  const enter = () => {
    if (first) location.hash = "#/";
    done();
  };
  const showKey = () => replace(place, keyDoor(enter, showAccount));
  const showAccount = () => replace(place, accountDoor(enter, showKey));
  if (first) replace(place, firstDoor(first, enter));
  else showKey();
  (place.querySelector("input") as HTMLElement | null)?.focus();
}
