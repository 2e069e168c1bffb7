import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

/** Arguments for Node that run wrangler itself, without the launcher process it would put in between. */
export function wranglerArguments(parameters: string[]): string[] {
  const manifest = createRequire(import.meta.url).resolve('wrangler/package.json')
  return ['--no-warnings', join(dirname(manifest), 'wrangler-dist/cli.js'), ...parameters]
}

/**
 * Environment in which wrangler contacts no other host: usage data, update check and look-up of request metadata are
 * off. The Worker gets none of the caller's variables; registry and logs are in our own folder.
 */
export function wranglerEnvironment(folder: string): NodeJS.ProcessEnv {
  return {
    WRANGLER_SEND_METRICS: 'false',
    WRANGLER_SEND_ERROR_REPORTS: 'false',
    WRANGLER_HIDE_BANNER: 'true',
    CLOUDFLARE_CF_FETCH_ENABLED: 'false',
    CLOUDFLARE_INCLUDE_PROCESS_ENV: 'false',
    WRANGLER_WRITE_LOGS: 'false',
    WRANGLER_LOG_PATH: join(folder, 'logs/wrangler'),
    WRANGLER_REGISTRY_PATH: join(folder, 'wrangler-registry'),
    MINIFLARE_REGISTRY_PATH: join(folder, 'wrangler-registry'),
    // Its prompts and hot keys are for a person at its terminal, which it does not have.
    CI: 'true',
    NO_COLOR: '1',
  }
}
