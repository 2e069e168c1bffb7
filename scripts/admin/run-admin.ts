import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOCAL_FOLDER } from '../script-environment.ts'
import { checkedAddress } from './address.ts'
import { ADMINISTRATION } from './commands/all.ts'
import { AdminError } from './errors.ts'
import type { Access } from './gateway.ts'
import type { Program } from './program.ts'
import { runProgram, type Terminal } from './run-program.ts'

const ADMIN: Program = {
  name: 'admin',
  usage: 'npm run admin --',
  commands: ADMINISTRATION,
  options: {},
  where: 'The gateway is the one of npm run dev, or HEADGATE_URL with ADMIN_TOKEN.',
  findAccess,
}

/** Runs one command line of `npm run admin`. @returns the exit code */
export const runAdmin = (words: readonly string[], terminal: Terminal): Promise<number> =>
  runProgram(ADMIN, words, terminal)

/**
 * Finds the gateway: HEADGATE_URL with ADMIN_TOKEN, or the local system that `npm run dev` runs.
 * @throws AdminError if neither is there, or if the token would travel unencrypted.
 */
function findAccess({ HEADGATE_URL: address, ADMIN_TOKEN: token }: NodeJS.ProcessEnv): Access {
  if (address) {
    if (!token) throw new AdminError('HEADGATE_URL is set, ADMIN_TOKEN is not')
    return {
      baseUrl: checkedAddress('HEADGATE_URL', address),
      token,
      signIn: 'ADMIN_TOKEN has to be the one of that gateway.',
    }
  }
  try {
    const local = JSON.parse(readFileSync(join(LOCAL_FOLDER, 'dev.json'), 'utf8'))
    if (typeof local.base_url === 'string' && typeof local.admin_token === 'string') {
      const signIn = 'npm run dev writes the token of the local system when it starts: start it again.'
      return { baseUrl: local.base_url, token: local.admin_token, signIn }
    }
  } catch {
    // No file, an unreadable one and a damaged one have the same error below.
  }
  throw new AdminError('no gateway: start one with npm run dev, or set HEADGATE_URL and ADMIN_TOKEN')
}
