import { type Call, given, type Option, type Outcome } from '../command.ts'
import { usageError } from '../errors.ts'
import type { Item } from '../gateway.ts'
import { type Naming, one, type TableCall } from '../table.ts'
import { addKnownModel, checkKnownModels } from './models.ts'
import { switchOf } from './people.ts'

// Providers, which belong to the whole deployment.

/** Credentials come from where no shell history and no process list shows them. */
const CREDENTIAL: Record<string, Option> = {
  'credential-stdin': { describe: 'read the credential from standard input (or set PROVIDER_CREDENTIAL)' },
  'credential-parts': { describe: 'it is a JSON object of named parts, such as {"secret":"..."}' },
}

const ALLOWED: Record<string, Option> = {
  'allow-member': {
    value: 'name',
    describe: 'member that may select models there, or refer to files and containers; or none',
    multiple: true,
  },
}

async function credentialOf(call: Call): Promise<string | Item | undefined> {
  const text = await credentialText(call)
  if (!call.options.flag('credential-parts')) return text
  if (text === undefined) throw usageError('--credential-parts needs a credential')
  return credentialParts(text)
}

async function credentialText({ options, environment, readInput }: Call): Promise<string | undefined> {
  if (!options.flag('credential-stdin')) return environment.PROVIDER_CREDENTIAL || undefined
  const text = (await readInput()).trim()
  if (text === '') throw usageError('there was no credential on standard input')
  return text
}

/** The parser's own error would quote the text. */
function credentialParts(text: string): Item {
  let parts: unknown = null
  try {
    parts = JSON.parse(text)
  } catch {}
  if (typeof parts !== 'object' || parts === null || Array.isArray(parts)) {
    throw usageError('the credential is not a JSON object of named parts')
  }
  return parts as Item
}

function allowsUnpriced({ options }: Call): boolean | undefined {
  const text = options.text('unpriced')
  if (text === undefined) return undefined
  if (text !== 'allow' && text !== 'refuse') throw usageError('--unpriced takes allow or refuse')
  return text === 'allow'
}

const settingsOf = async (call: Call): Promise<Item> =>
  given({
    credential: await credentialOf(call),
    allowed_members: call.options.texts('allow-member')?.filter((name) => name !== 'none'),
    allow_unpriced: allowsUnpriced(call),
  })

async function settingsOfNew(call: Call): Promise<Item> {
  const settings = await settingsOf(call)
  if (settings.credential === undefined) {
    throw usageError('give --credential-stdin, or set PROVIDER_CREDENTIAL')
  }
  return settings
}

/** Creates a provider, and on it the models that are named. */
async function createProvider(call: TableCall): Promise<Outcome> {
  const models = call.options.texts('model') ?? []
  const { path, body } = await call.request()
  await checkKnownModels(call, { kind: String(body.kind), baseUrl: String(body.base_url ?? '') }, models)
  const provider = await call.gateway.send('providers.create', { path, body })
  const { id, kind, base_url: baseUrl } = provider as { id: string; kind: string; base_url: string }
  for (const upstreamModel of models) {
    await addKnownModel(call, { providerId: id, kind, baseUrl, upstreamModel })
  }
  return one(provider)
}

export const PROVIDERS: Record<string, Naming> = {
  'providers list': { columns: ['name', 'kind', 'base_url', 'id', 'disabled_at'] },
  'providers show': {},
  'providers create': {
    arguments: ['name'],
    takes: ['kind', 'base_url', 'organization_id'],
    options: {
      ...ALLOWED,
      ...CREDENTIAL,
      model: {
        value: 'id',
        describe: 'offer this model under its id there, with what the catalogue knows of it',
        multiple: true,
      },
    },
    body: settingsOfNew,
    run: createProvider,
  },
  'providers update': {
    endpoint: 'providers.change',
    takes: ['name', 'base_url'],
    options: {
      ...ALLOWED,
      unpriced: { value: 'allow|refuse', describe: 'calls that use what has no price' },
      ...CREDENTIAL,
    },
    body: settingsOf,
  },
  'providers disable': { ...switchOf('providers.change', true), summary: 'Send no call to a provider' },
  'providers enable': {
    ...switchOf('providers.change', false),
    summary: 'Send calls to a provider again',
  },
}
