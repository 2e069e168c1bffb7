import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { AdminError } from './errors.ts'

/** A gateway that somebody is signed in to. */
export interface Profile {
  url: string
  token: string
  /** The organization that commands work in where they name none: slug or id. */
  organization?: string
}

/** All sign-ins of this user, and the one that is meant where none is named. */
export interface Profiles {
  current: string
  profiles: Record<string, Profile>
}

export const DEFAULT_PROFILE = 'default'

/** `%APPDATA%\headgate` on Windows; elsewhere by https://specifications.freedesktop.org/basedir-spec/latest/. */
function folderOf({ XDG_CONFIG_HOME, APPDATA, HOME }: NodeJS.ProcessEnv): string {
  if (process.platform === 'win32' && APPDATA) return join(APPDATA, 'headgate')
  return join(XDG_CONFIG_HOME || join(HOME || homedir(), '.config'), 'headgate')
}

const fileOf = (environment: NodeJS.ProcessEnv) => join(folderOf(environment), 'profiles.json')

/** @throws AdminError for a file that is damaged or cannot be read; without a file there are no profiles. */
export function readProfiles(environment: NodeJS.ProcessEnv): Profiles {
  const file = fileOf(environment)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return { current: DEFAULT_PROFILE, profiles: {} }
    throw new AdminError(`${file} cannot be read: ${code}`)
  }
  try {
    const { current, profiles } = JSON.parse(text) as Profiles
    if (typeof current === 'string' && Object.values(profiles).every(isProfile)) return { current, profiles }
  } catch {
    // Whatever is wrong with it has the error below, which quotes nothing of it.
  }
  throw new AdminError(`${file} is damaged`, { hint: 'Delete it, and sign in again: headgate login' })
}

const isProfile = ({ url, token }: Profile) => typeof url === 'string' && typeof token === 'string'

/** Replaces the file at once, readable by its owner alone: it has tokens. @returns its path */
export function writeProfiles(environment: NodeJS.ProcessEnv, profiles: Profiles): string {
  const folder = folderOf(environment)
  const file = fileOf(environment)
  const next = `${file}.${process.pid}`
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  chmodSync(folder, 0o700)
  try {
    writeFileSync(next, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(next, file)
  } catch (error) {
    rmSync(next, { force: true })
    throw new AdminError(`${file} cannot be written: ${(error as NodeJS.ErrnoException).code}`)
  }
  return file
}
