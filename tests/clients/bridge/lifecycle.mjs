// node lifecycle.mjs URL KEY: the published client of the OpenAI Agents SDK through a sandbox's
// whole life, over the bridge.
import { Manifest } from '@openai/agents/sandbox';
import { CloudflareSandboxClient } from '@openai/agents-extensions/sandbox/cloudflare';
import { Report, check, equal, eventually } from '../tap.mjs';

const [workerUrl, apiKey] = process.argv.slice(2);
const report = new Report();
const client = new CloudflareSandboxClient({ workerUrl, apiKey });
const utf8 = (bytes) => new TextDecoder().decode(bytes);

/** What a promise fails with. */
async function failure(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  throw new Error('it did not fail');
}

async function execute(session, cmd, more = {}) {
  return await session.execCommand({ cmd, ...more });
}

/** The client tells a command's end in a sentence. */
function ended(output, code) {
  check(output.includes(`Process exited with code ${code}`), `exit ${code} in ${output}`);
}

let session, other;

await report.run('a sandbox is made with the files of its manifest', async () => {
  session = await client.create(
    new Manifest({
      root: '/workspace',
      environment: { GREETING: "it's ünïcode" },
      entries: {
        'notes/hello.txt': { type: 'file', content: 'hello from the manifest\n' },
        'empty folder': { type: 'dir', children: {} },
      },
    }),
  );
  check(/^[a-z2-7]{26}$/.test(session.state.sandboxId), `an id: ${session.state.sandboxId}`);
  check(await session.running(), 'it runs');
});

await report.run('a command tells its output, its environment and its folder', async () => {
  const output = await execute(session, 'pwd; echo "$GREETING"; cat notes/hello.txt >&2');
  ended(output, 0);
  check(output.includes("/workspace\nit's ünïcode"), `stdout in ${output}`);
  check(output.includes('hello from the manifest'), `stderr in ${output}`);
});

await report.run('a command that fails tells its exit code', async () => {
  ended(await execute(session, 'exit 3'), 3);
  ended(await execute(session, 'no-such-program'), 127);
  ended(await execute(session, 'kill -9 $$'), 137);
});

await report.run('much output arrives whole, characters of several bytes too', async () => {
  const count = 200000;
  const result = await session.execShell(`yes 'aé€😀' | head -n ${count}`);
  equal(result.exitCode, 0, 'exit code');
  check(result.stdout === 'aé€😀\n'.repeat(count), `${result.stdout.length} characters`);
});

await report.run('files are read and written, whatever is in them', async () => {
  equal(utf8(await session.readFile({ path: 'notes/hello.txt' })), 'hello from the manifest\n', 'text');
  const bytes = new Uint8Array(3 << 20).map((_, index) => (index * 7919) >> 3);
  await session.writeFile('/workspace/deep/er/ä b%c.bin', bytes);
  const back = await session.readFile({ path: 'deep/er/ä b%c.bin' });
  check(Buffer.compare(back, bytes) === 0, 'the same bytes');
  equal((await session.readFile({ path: 'deep/er/ä b%c.bin', maxBytes: 5 })).byteLength, 5, 'five');
  await session.writeFile('/workspace/event.txt', new TextEncoder().encode('data: no event\n\n'));
  equal(utf8(await session.readFile({ path: 'event.txt' })), 'data: no event\n\n', 'looks like one');
});

await report.run('a file that is not there is not found', async () => {
  const error = await failure(session.readFile({ path: 'missing' }));
  equal(error.constructor.name, 'SandboxWorkspaceReadNotFoundError', 'class');
  equal(error.details.status, 404, 'status');
});

await report.run('paths exist or do not', async () => {
  equal(await session.pathExists('notes/hello.txt'), true, 'a file');
  equal(await session.pathExists('notes/nothing'), false, 'nothing');
  equal(await session.directoryExists('empty folder'), true, 'a folder');
  equal(await session.directoryExists('notes/hello.txt'), false, 'a file is no folder');
});

await report.run('the editor makes, changes and deletes files', async () => {
  const editor = session.createEditor();
  await editor.createFile({ type: 'create_file', path: 'edited.txt', diff: '+one\n+two\n' });
  check(utf8(await session.readFile({ path: 'edited.txt' })).startsWith('one\ntwo'), 'made');
  await editor.deleteFile({ type: 'delete_file', path: 'edited.txt' });
  equal(await session.pathExists('edited.txt'), false, 'deleted');
});

await report.run('a workspace is persisted, and another hydrated with it', async () => {
  await execute(session, 'chmod 750 notes && ln -s hello.txt notes/link');
  const archive = await session.persistWorkspace();
  other = await client.create(new Manifest({ root: '/workspace' }));
  check(other.state.sandboxId !== session.state.sandboxId, 'another sandbox');
  equal(await other.pathExists('notes/hello.txt'), false, 'nothing there yet');
  await other.hydrateWorkspace(archive);
  const output = await execute(other, 'cat notes/link; stat -c %a notes');
  check(output.includes('hello from the manifest\n750'), `content and mode in ${output}`);
  equal((await other.readFile({ path: 'deep/er/ä b%c.bin' })).byteLength, 3 << 20, 'size');
});

await report.run('a terminal shows what is typed into it', async () => {
  const shown = await execute(session, 'echo "sum $((40 + 2))"; test -t 0 && echo a terminal', {
    tty: true, yieldTimeMs: 2000,
  });
  const id = Number(/session ID (\d+)/i.exec(shown)?.[1]);
  check(Number.isInteger(id), `a session in ${shown}`);
  let seen = shown;
  await eventually(async () => {
    seen += await session.writeStdin({ sessionId: id, chars: '', yieldTimeMs: 250 });
    return seen.includes('sum 42') && seen.includes('a terminal');
  }, 'sum 42');
  seen = await session.writeStdin({ sessionId: id, chars: 'tr a-z A-Z\nshout\n', yieldTimeMs: 500 });
  await eventually(async () => {
    seen += await session.writeStdin({ sessionId: id, chars: '', yieldTimeMs: 250 });
    return seen.includes('SHOUT');
  }, 'SHOUT');
});

await report.run('many commands at once do not mix', async () => {
  const outputs = await Promise.all(
    Array.from({ length: 20 }, (_, index) => session.execShell(`echo ${index}; sleep 0.1; exit ${index}`)));
  outputs.forEach((result, index) => {
    equal([result.stdout, result.exitCode], [`${index}\n`, index], `command ${index}`);
  });
});

await report.run('a bucket that cannot be reached is refused, and says so', async () => {
  const error = await failure(session.mountBucket({
    bucket: 'bucket', mountPath: '/workspace/mnt', options: { endpoint: 'http://127.0.0.1:9',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' } } }));
  equal(error.constructor.name, 'SandboxMountError', 'class');
  equal(error.details.status, 502, 'status');
  check(error.details.reason.includes('127.0.0.1'), `says so: ${error.details.reason}`);
});

await report.run('a key that is not known is refused', async () => {
  const stranger = new CloudflareSandboxClient({ workerUrl, apiKey: 'wrong' });
  const error = await failure(stranger.create(new Manifest({ root: '/workspace' })));
  check(String(error.message).includes('unauthorized: Unauthorized'), `says so: ${error.message}`);
});

await report.run('a sandbox is deleted, and deleting it again is fine', async () => {
  await session.delete();
  await session.delete();
  await other.delete();
  const again = await client.resume(session.state);
  equal(await again.pathExists('notes/hello.txt'), false, 'a fresh sandbox under the old name');
  await again.delete();
});

report.end();
process.exit(report.failed ? 1 : 0);
