// Lets the published package load in Node, which is no Worker: a stand-in for the platform's module,
// names of files without their ending, and a second name for a class that is not exported.
const platform = `data:text/javascript,
  export class DurableObject {} export class WorkerEntrypoint {} export class RpcTarget {}
  export const env = {}, exports = {}, tracing = {};`;

export async function resolve(specifier, context, next) {
  if (specifier.startsWith('cloudflare:')) return { url: platform, shortCircuit: true };
  try {
    return await next(specifier, context);
  } catch (error) {
    if (!specifier.startsWith('.') || error.code !== 'ERR_MODULE_NOT_FOUND') throw error;
    return next(`${specifier}.js`, context);
  }
}

export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!/@cloudflare\/sandbox\/dist\/sandbox-[^/]*\.js$/.test(url)) return loaded;
  return { ...loaded, source: `${loaded.source}\nexport { ContainerControlClient };` };
}
