// node --import ./register.mjs run.mjs TRANSPORT HOST:PORT FOLDER [WORD...]
// Every case of the table over one transport, and whether the table is complete.
import { readdirSync } from 'node:fs';
import { connect, errorCodes, methodsOf } from './clients.mjs';
import { EXCUSED_CODES, EXCUSED_METHODS } from './excused.mjs';
import { Report, check, equal, eventually } from './tap.mjs';

const [transport, host, folder, ...words] = process.argv.slice(2);
const report = new Report();
const cases = [];

for (const file of readdirSync(new URL('./cases', import.meta.url)).sort())
  cases.push(...(await import(`./cases/${file}`)).default);

const client = await connect(transport, host);
let number = 0;

for (const one of cases) {
  if (one.transports && !one.transports.includes(transport)) continue;
  // Some cases need the agent without walls and daemon around it; `alone` says why.
  if (one.alone && process.env.BURROW_KEY) continue;
  if (words.length && !words.some((word) => `${one.methods} ${one.name}`.includes(word))) continue;
  const place = `${folder}/${transport}-${++number}`;
  await report.run(`${transport}: ${one.methods.join(', ')}: ${one.name}`, () =>
    one.run(client, { folder: place, session: `${transport}-${number}`, transport, host }), one.seconds);
}

const covered = (name) => cases.flatMap((one) => one[name] ?? []);

await report.run(`${transport}: every method of the client has a case`, async () => {
  const known = new Set([...covered('methods'), ...Object.keys(EXCUSED_METHODS)]);
  equal(methodsOf(await connect('http', host)).filter((name) => !known.has(name)), [], 'without');
});

await report.run(`${transport}: every error code has a case`, async () => {
  const known = new Set([...covered('codes'), ...Object.keys(EXCUSED_CODES)]);
  equal((await errorCodes()).filter((code) => !known.has(code)), [], 'without');
});

if (transport === 'rpc')
  await report.run('rpc: nothing is left in the tables of the client', async () => {
    const connection = client.getConnection();
    await client.utils.ping();
    await eventually(() => {
      const { imports, exports } = connection.getStats();
      return imports === 1 && exports === 1;
    }, 'one import and one export');
    check(connection.isConnected(), 'the connection is still there');
  });

client.disconnect?.();
report.end();
process.exit(report.failed ? 1 : 0);
