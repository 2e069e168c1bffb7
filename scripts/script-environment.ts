import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { StartError } from './local/children.ts'

/** Folder of the local system: data, logs and secrets, ignored by git. */
export const LOCAL_FOLDER = process.env.HEADGATE_FOLDER || join(import.meta.dirname, '../.headgate')

/**
 * The variables a script works with: the environment's, or, when that names no database, those of the local system
 * that `npm run dev` runs.
 *
 * @throws StartError if neither is there
 */
export function scriptEnvironment(): NodeJS.ProcessEnv {
  if (process.env.DATABASE_URL) return process.env
  try {
    const local = parseEnv(readFileSync(join(LOCAL_FOLDER, 'worker.env'), 'utf8'))
    console.log('DATABASE_URL is not set: using the local system of npm run dev')
    return { ...process.env, ...local }
  } catch {
    throw new StartError('DATABASE_URL is not set, and no local system is running (npm run dev)')
  }
}
