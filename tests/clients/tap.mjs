// Tests as lines that tools/run-tests reads.
import { isDeepStrictEqual, inspect } from 'node:util';

export class Failure extends Error {}

export function check(condition, text) {
  if (!condition) throw new Failure(text);
}

export function equal(found, wanted, text) {
  if (!isDeepStrictEqual(found, wanted))
    throw new Failure(`${text}: ${inspect(found)} instead of ${inspect(wanted)}`);
}

/** What an operation is refused with: the client's error, whose code must be this one. */
export async function refused(promise, code) {
  try {
    await promise;
  } catch (error) {
    if (error.code === code) return error;
    throw new Failure(`refused with ${error.code ?? error} (${error.message}) instead of ${code}`);
  }
  throw new Failure(`not refused, but should be with ${code}`);
}

/** Wait for something that comes by itself. */
export async function eventually(look, text, seconds = 60) {
  const end = Date.now() + seconds * 1000;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > end) throw new Failure(`not within ${seconds} s: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export class Report {
  count = 0;
  failed = 0;

  async run(name, test, seconds = 60) {
    let timer;
    const patience = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Failure(`no end within ${seconds} s`)), seconds * 1000);
    });
    this.count++;
    try {
      await Promise.race([test(), patience]);
      console.log(`ok ${this.count} - ${name}`);
    } catch (error) {
      this.failed++;
      console.log(`not ok ${this.count} - ${name}`);
      for (const line of String(error instanceof Failure ? error.message : error.stack).split('\n'))
        console.log(`# ${line}`);
    } finally {
      clearTimeout(timer);
    }
  }

  end() {
    console.log(`1..${this.count}`);
  }
}
