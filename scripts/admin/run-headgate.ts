import { checkedAddress } from './address.ts'
import { ADMINISTRATION } from './commands/all.ts'
import { noProfile, SESSION_COMMANDS } from './commands/session.ts'
import { completionCommand } from './completion.ts'
import { AdminError } from './errors.ts'
import { readProfiles } from './profiles.ts'
import type { Program } from './program.ts'
import { runProgram, type Terminal } from './run-program.ts'

const HEADGATE: Program = {
  name: 'headgate',
  usage: 'headgate',
  commands: [...SESSION_COMMANDS, ...ADMINISTRATION, completionCommand(() => HEADGATE)],
  options: {
    profile: { value: 'profile', describe: 'a sign-in other than the current one (or HEADGATE_PROFILE)' },
  },
  where: 'The gateway is the one of headgate login, or HEADGATE_URL with ADMIN_TOKEN.',
  findAccess,
}

/** Runs one command line of `headgate`. @returns the exit code */
export const runHeadgate = (words: readonly string[], terminal: Terminal): Promise<number> =>
  runProgram(HEADGATE, words, terminal)

/**
 * Finds the gateway: a named profile, else HEADGATE_URL with ADMIN_TOKEN, else the current profile.
 * @throws AdminError where nobody is signed in, and for HEADGATE_URL without a token: its command would go to another gateway.
 */
function findAccess(environment: NodeJS.ProcessEnv, named: string | undefined) {
  const { HEADGATE_URL: address, ADMIN_TOKEN: token, HEADGATE_PROFILE } = environment
  const name = named ?? (HEADGATE_PROFILE || undefined)
  if (name === undefined && address) {
    const baseUrl = checkedAddress('HEADGATE_URL', address)
    if (token) return { baseUrl, token, signIn: 'ADMIN_TOKEN has to be the one of that gateway.' }
    const { profiles } = readProfiles(environment)
    const [known] = Object.entries(profiles).filter(([, { url }]) => url === baseUrl)
    if (known) return accessOf(...known)
    const hint = `Sign in with: headgate login --url ${baseUrl}`
    throw new AdminError(`HEADGATE_URL is set, and there is no token for it`, { hint })
  }
  const { current, profiles } = readProfiles(environment)
  const profile = profiles[name ?? current]
  if (profile === undefined) throw noProfile(name ?? current, Object.keys(profiles))
  return accessOf(name ?? current, profile)
}

function accessOf(
  name: string,
  { url, token, organization }: ReturnType<typeof readProfiles>['profiles'][string],
) {
  const signIn = `Sign in again: headgate login --profile ${name} --url ${url}`
  return { baseUrl: checkedAddress('the URL', url), token, signIn, ...(organization && { organization }) }
}
