// The three clients of one agent, with one interface: that of Cloudflare's own SandboxClient.
import { readdirSync } from 'node:fs';
import WebSocket from 'ws';
import * as sdk from '@cloudflare/sandbox';

// Through a daemon every request needs a key, which the client, made for a network of its own, knows
// nothing of.
const headers = process.env.BURROW_KEY ? { Authorization: `Bearer ${process.env.BURROW_KEY}` } : {};
const plainFetch = globalThis.fetch;

class Socket extends WebSocket {
  constructor(url, protocols, options = {}) {
    super(url, protocols, { ...options, headers: { ...options.headers, ...headers } });
  }
}

globalThis.fetch = (url, options = {}) =>
  plainFetch(url, { ...options, headers: { ...Object.fromEntries(new Headers(options.headers)), ...headers } });
globalThis.WebSocket = Socket; // Node 18 and 20 have none

const dist = new URL('./node_modules/@cloudflare/sandbox/dist/', import.meta.url);

/** A module of the package that has a hash in its name. */
function inner(prefix) {
  const name = readdirSync(dist).find((file) => file.startsWith(prefix) && file.endsWith('.js'));
  return import(new URL(name, dist));
}

/** What a Durable Object has to reach its container: here, a WebSocket to the agent. */
function stubOf(host) {
  return {
    async fetch() {
      const webSocket = new Socket(`ws://${host}/rpc`);
      await new Promise((resolve, reject) => {
        webSocket.once('open', resolve);
        webSocket.once('error', reject);
      });
      webSocket.accept = () => {};
      return { status: 101, webSocket };
    },
  };
}

export const TRANSPORTS = ['http', 'websocket', 'rpc'];

export async function connect(transport, host) {
  const baseUrl = `http://${host}`;
  if (transport === 'http') return new sdk.SandboxClient({ baseUrl });
  if (transport === 'websocket')
    return new sdk.SandboxClient({
      baseUrl,
      transportMode: 'websocket',
      wsUrl: `ws://${host}/ws`,
    });
  const { ContainerControlClient } = await inner('sandbox-');
  return new ContainerControlClient({ stub: stubOf(host), port: 3000 });
}

/** Every method of the client's classes, as "files.readFile"; helpers of their base are left out. */
export function methodsOf(client) {
  const base = new Set();
  const names = [];
  const parts = Object.entries(client).filter(([, part]) => part?.constructor?.name.endsWith('Client'));
  for (const [, part] of parts)
    for (const name of Object.getOwnPropertyNames(
      Object.getPrototypeOf(Object.getPrototypeOf(part)),
    ))
      base.add(name);
  for (const [space, part] of parts)
    for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(part)))
      if (name !== 'constructor' && !base.has(name)) names.push(`${space}.${name}`);
  return names;
}

/** The codes that the client knows. */
export async function errorCodes() {
  const errors = await inner('errors-');
  const table = Object.values(errors).find((value) => value?.FILE_NOT_FOUND);
  return Object.keys(table);
}

export const parseEvents = sdk.parseSSEStream;
export const collectFile = sdk.collectFile;
