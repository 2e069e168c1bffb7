import { readFileSync } from 'node:fs'

/** The settings of wrangler.toml that the open-source runtime needs as well. */
export interface RuntimeSettings {
  compatibilityDate: string
  flags: string[]
}

/** The triggers by time of a wrangler.toml, as cron expressions in UTC. */
export function readCrons(path: string): string[] {
  const crons = /^crons\s*=\s*\[([^\]]*)\]/m.exec(readFileSync(path, 'utf8'))?.[1] ?? ''
  return [...crons.matchAll(/"([^"]+)"/g)].map(([, cron = '']) => cron)
}

/**
 * Reads the runtime settings of a wrangler.toml, so that tests run what is deployed. Only the two members it needs
 * are understood, in the form our own file writes them.
 *
 * @throws if one of them is missing
 */
export function readRuntimeSettings(path: string): RuntimeSettings {
  const text = readFileSync(path, 'utf8')
  const date = /^compatibility_date\s*=\s*"([^"]+)"/m.exec(text)?.[1]
  const flags = /^compatibility_flags\s*=\s*\[([^\]]*)\]/m.exec(text)?.[1]
  if (date === undefined || flags === undefined) throw new Error(`${path} has no compatibility date or flags`)
  return { compatibilityDate: date, flags: [...flags.matchAll(/"([^"]+)"/g)].map(([, flag = '']) => flag) }
}
