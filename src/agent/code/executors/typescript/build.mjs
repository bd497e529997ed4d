/* Make ../typescript.js of entry.js and the parts of sucrase that it needs: see README.md. */
import {build} from 'esbuild';
import {readFile} from 'node:fs/promises';
import {fileURLToPath} from 'node:url';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/* Parts of sucrase that only other options need. */
const UNUSED = new RegExp('/(CJSImport|JSX|ReactDisplayName|ReactHotLoader|JestHoist|Flow|' +
                          'OptionalChainingNullish|NumericSeparator|OptionalCatchBinding)Transformer$');
const leaveOut = {
  name: 'leave-out',
  setup(builder) {
    builder.onResolve({filter: UNUSED}, () => ({path: 'unused', namespace: 'unused'}));
    builder.onLoad({filter: /.*/, namespace: 'unused'},
                   () => ({contents: 'export default class {}\nexport const startsWithLowerCase = () => false;'}));
  },
};

const licence = await readFile(here('node_modules/sucrase/LICENSE'), 'utf8');
const {version} = JSON.parse(await readFile(here('node_modules/sucrase/package.json'), 'utf8'));

await build({
  entryPoints: [here('entry.js')],
  bundle: true,
  format: 'iife',
  globalName: 'syntax',
  platform: 'neutral',
  target: 'node16', // contexts run in whatever Node their image has
  charset: 'ascii',
  minify: true,
  legalComments: 'none',
  // A function, so that contexts whose code has neither types nor imports need not run it.
  banner: {js: `/* Made by typescript/build.mjs of typescript/entry.js and sucrase ${version}:\n\n` +
               `${licence.trim()}\n*/\n'use strict';\n` +
               'globalThis.__burrow_syntax__ = () => {'},
  footer: {js: 'return syntax;\n};'},
  outfile: process.argv[2] ?? here('../typescript.js'),
  plugins: [leaveOut],
});
