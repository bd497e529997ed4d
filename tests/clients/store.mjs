// An object store on loopback, as presigned URLs lead to one: https with a certificate of a CA of its
// own. It keeps the bytes of every part, answers with their MD5 as ETag, and fails where its path
// says so.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';

const SLOW_MS = 40; // between two pieces

/** A CA and what it signed for "localhost", as PEM texts. */
function certify() {
  const folder = mkdtempSync(`${tmpdir()}/burrow-test-store-`);
  const openssl = (...words) => execFileSync('openssl', words, { cwd: folder, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  try {
    openssl('req', '-x509', ...key, '-days', '2', '-subj', '/CN=Test CA', '-keyout', 'ca.key', '-out', 'ca.pem');
    openssl('req', ...key, '-subj', '/CN=localhost', '-keyout', 'key.pem', '-out', 'request.pem');
    writeFileSync(`${folder}/names`, 'subjectAltName=DNS:localhost\n');
    openssl('x509', '-req', '-in', 'request.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names', '-out', 'cert.pem');
    const [ca, cert, privateKey] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => readFileSync(`${folder}/${name}`, 'utf8'));
    return { ca, cert, key: privateKey };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export const etagOf = (bytes) => `"${createHash('md5').update(bytes).digest('hex')}"`;

/** What a path that begins so does with a part, `attempt` times asked for it. True: it takes it. */
const WAYS = {
  'flaky': (response, attempt) => attempt > 2 || refuse(response, 500),
  'broken': (response) => refuse(response, 500),
  'forbidden': (response) => refuse(response, 403),
  'nameless': (response) => !response.writeHead(200).end(),
  'cut': (response) => {
    response.writeHead(200, { ETag: '"cut"', 'Content-Length': 1000 });
    response.write('short');
    setTimeout(() => response.destroy(), 20);
  },
};

function refuse(response, status) {
  response.writeHead(status).end('<Error>the store says why, and repeats the signature</Error>');
}

export class Store {
  parts = new Map(); // path -> bytes, of the last that was whole
  attempts = new Map();

  static async start() {
    const store = new Store();
    const { ca, ...pair } = certify();
    store.ca = ca;
    store.server = createServer(pair, (request, response) => store.take(request, response).catch(() => {}));
    await new Promise((resolve) => store.server.listen(0, '127.0.0.1', resolve));
    store.port = store.server.address().port;
    return store;
  }

  url(path, host = 'localhost') {
    return `https://${host}:${this.port}/${path}?X-Amz-Signature=s3cret`;
  }

  async take(request, response) {
    const path = new URL(request.url, 'https://x').pathname.slice(1);
    const way = path.split('/')[0];
    const attempt = (this.attempts.get(path) ?? 0) + 1;
    const pieces = [];
    this.attempts.set(path, attempt);
    for await (const piece of request) {
      pieces.push(piece);
      if (way === 'half') return request.destroy();
      if (way === 'slow') await sleep(SLOW_MS);
    }
    const bytes = Buffer.concat(pieces);
    if (request.method !== 'PUT' || bytes.length !== Number(request.headers['content-length']))
      return refuse(response, 400);
    if (WAYS[way] && !WAYS[way](response, attempt)) return;
    this.parts.set(path, bytes);
    response.writeHead(200, { ETag: etagOf(bytes) }).end();
  }

  end() {
    this.server.closeAllConnections?.();
    this.server.close();
  }
}
