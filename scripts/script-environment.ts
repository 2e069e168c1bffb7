import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StartError } from './node/start-error.ts'

/** Folder of the local system: data, logs and secrets, ignored by git. The environment names it, not `.env`. */
export const LOCAL_FOLDER = process.env.HEADGATE_FOLDER || join(import.meta.dirname, '../.headgate')

/** Folder for `npm run services`. Its Durable Objects are wrangler's, so it shares no data with `npm run dev`. */
export const SERVICES_FOLDER = join(LOCAL_FOLDER, 'services')

const ENV_FILE = join(import.meta.dirname, '../.env')

/**
 * Reads `.env`, if there is one, into the environment, which wins over the file.
 *
 * @throws StartError if the file is there and cannot be read
 */
export function loadDotEnv(): void {
  try {
    process.loadEnvFile(ENV_FILE)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new StartError('.env cannot be read')
  }
}

/**
 * The variables a script works with: the environment's and those of `.env`, or, when that names no database, those of the
 * local system that `npm run dev` runs.
 *
 * @throws StartError if neither is there
 */
export function scriptEnvironment(): NodeJS.ProcessEnv {
  loadDotEnv()
  if (process.env.DATABASE_URL) return process.env
  try {
    const local = JSON.parse(readFileSync(join(LOCAL_FOLDER, 'worker.json'), 'utf8')) as NodeJS.ProcessEnv
    console.log('DATABASE_URL is not set: using the local system of npm run dev')
    return { ...process.env, ...local }
  } catch {
    throw new StartError('DATABASE_URL is not set, and no local system is running (npm run dev)')
  }
}
