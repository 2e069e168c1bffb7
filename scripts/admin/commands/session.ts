import { checkedAddress } from '../address.ts'
import type { Call, Command, Option, Outcome } from '../command.ts'
import { AdminError, usageError } from '../errors.ts'
import { connectGateway, type Gateway } from '../gateway.ts'
import { organizationOf } from '../names.ts'
import { DEFAULT_PROFILE, type Profile, readProfiles, writeProfiles } from '../profiles.ts'

// Signing in to installations. A token comes from a prompt, standard input or the environment, never from the command line, which
// other users of the machine can read.

async function urlOf({ options, environment, ask }: Call): Promise<string> {
  const given = options.text('url') ?? environment.HEADGATE_URL
  return checkedAddress('the URL', given || (await ask('URL of the gateway: ', 'shown')))
}

async function tokenOf({ options, environment, readInput, ask }: Call): Promise<string> {
  const token = options.flag('token-stdin')
    ? (await readInput()).trim()
    : environment.ADMIN_TOKEN || (await askForToken(ask))
  if (token === '') throw usageError('there was no token')
  if (!/^[\x21-\x7e]+$/.test(token)) throw usageError('the token is not one line of printable characters')
  return token
}

const askForToken = (ask: Call['ask']) =>
  Promise.resolve()
    .then(() => ask('Token (not shown): ', 'hidden'))
    .catch(() => {
      throw usageError('which token? --token-stdin reads it from standard input, or set ADMIN_TOKEN')
    })

async function login(call: Call): Promise<Outcome> {
  const { options, environment, note } = call
  const known = readProfiles(environment)
  const name = profileName(options.text('profile') ?? DEFAULT_PROFILE)
  const url = await urlOf(call)
  const token = await tokenOf(call)
  const organization = options.text('organization')
  const signIn = 'Nothing was stored. The token is ADMIN_TOKEN of the installation.'
  const gateway = connectGateway({ baseUrl: url, token, signIn }, note)
  await check(gateway, organization)
  const profile: Profile = { url, token, ...(organization && { organization }) }
  const file = writeProfiles(environment, { current: name, profiles: { ...known.profiles, [name]: profile } })
  note(`Signed in. ${file} has the token; only you can read it.`)
  return { kind: 'item', item: shown(name, profile, true) }
}

function profileName(name: string): string {
  if (!/^[A-Za-z0-9][\w.-]{0,39}$/.test(name)) {
    throw usageError('a profile is named by up to 40 letters, digits and . _ -')
  }
  return name
}

/** Makes a request with the token, and one for the organization where it is named. */
async function check(gateway: Gateway, organization: string | undefined): Promise<void> {
  await gateway.call('organizations.list', { query: { limit: 1 } })
  if (organization === undefined) return
  const organizationId = await organizationOf(gateway, organization)
  await gateway.call('organizations.show', { path: { organizationId } })
}

async function logout({ options, environment }: Call): Promise<Outcome> {
  const { current, profiles } = readProfiles(environment)
  const name = options.text('profile') ?? current
  const { [name]: removed, ...others } = profiles
  if (removed === undefined) throw noProfile(name, Object.keys(profiles))
  const next = name === current ? (Object.keys(others)[0] ?? DEFAULT_PROFILE) : current
  writeProfiles(environment, { current: next, profiles: others })
  return { kind: 'item', item: { profile: name, url: removed.url, signed_in: false } }
}

async function whoami(call: Call): Promise<Outcome> {
  const { current, profiles } = readProfiles(call.environment)
  const name = call.options.text('profile') ?? current
  const { gateway } = call
  await check(gateway, undefined)
  const isProfile = profiles[name]?.url === gateway.baseUrl
  return {
    kind: 'item',
    item: {
      profile: isProfile ? name : null,
      url: gateway.baseUrl,
      actor: 'admin_token',
      organization: call.environment.HEADGATE_ORGANIZATION ?? null,
    },
  }
}

async function listProfiles({ environment }: Call): Promise<Outcome> {
  const { current, profiles } = readProfiles(environment)
  const items = Object.entries(profiles).map(([name, profile]) => shown(name, profile, name === current))
  return { kind: 'list', items, columns: ['profile', 'url', 'organization', 'current'], more: false }
}

async function useProfile({ environment, positionals: [name = ''] }: Call): Promise<Outcome> {
  const { profiles } = readProfiles(environment)
  const profile = profiles[name]
  if (profile === undefined) throw noProfile(name, Object.keys(profiles))
  writeProfiles(environment, { current: name, profiles })
  return { kind: 'item', item: shown(name, profile, true) }
}

/** Without the token. */
const shown = (name: string, { url, organization }: Profile, current: boolean) => ({
  profile: name,
  url,
  organization: organization ?? null,
  current,
})

export function noProfile(name: string, names: readonly string[]): AdminError {
  if (names.length === 0) return new AdminError('not signed in', { hint: 'Sign in with: headgate login' })
  return new AdminError(`there is no profile "${name}"`, { hint: `There are: ${names.join(', ')}` })
}

const command = (
  name: string,
  summary: string,
  run: Command['run'],
  options: Record<string, Option> = {},
): Command => {
  const [group = '', verb = '', ...positionals] = name.split(' ')
  return { group, verb, summary, positionals, inOrganization: false, options, run }
}

export const SESSION_COMMANDS: readonly Command[] = [
  command('login', 'Sign in to an installation, and store its URL and token for later commands', login, {
    url: { value: 'url', describe: 'where it is (or HEADGATE_URL); asked for without' },
    'token-stdin': {
      describe: 'read the token from standard input (or set ADMIN_TOKEN); asked for without',
    },
    organization: {
      value: 'slug or id',
      describe: 'the organization of commands that name none',
    },
  }),
  command('logout', 'Forget the token of an installation', logout),
  command('whoami', 'Show which installation commands work on, and whether it takes the token', whoami),
  command('profiles list', 'List the installations that are signed in to', listProfiles),
  command('profiles use profile', 'Make commands work on another installation', useProfile),
]
