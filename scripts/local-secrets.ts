import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createApiKey } from '../src/identity/api-key.ts'
import { writePrivateFile } from './node/private-file.ts'
import { StartError } from './node/start-error.ts'

/** The callers of the demo data, each with a key of its own. */
export const DEMO_KEY_NAMES = [
  'owner',
  'member',
  'restricted',
  'limited',
  'revoked',
  'no_mcp',
  'broke',
  'other_org',
] as const

export type DemoKeyName = (typeof DEMO_KEY_NAMES)[number]
export type DemoKeys = Record<DemoKeyName, string>

/** Secrets that must survive a restart: stored digests and sealed values depend on the peppers and keys. */
export interface LocalSecrets {
  adminToken: string
  /** KEY_PEPPERS. */
  keyPeppers: string
  /** VAULT_KEYS. */
  vaultKeys: string
  redisToken: string
  qstashToken: string
  qstashCurrentSigningKey: string
  qstashNextSigningKey: string
  keys: DemoKeys
}

/** New secrets from the system's random source. */
export function createLocalSecrets(): LocalSecrets {
  const random = () => randomBytes(32).toString('base64url')
  const ring = () => `local1:${randomBytes(32).toString('base64')}`
  return {
    adminToken: `hga_${random()}`,
    keyPeppers: ring(),
    vaultKeys: ring(),
    redisToken: random(),
    qstashToken: random(),
    qstashCurrentSigningKey: `sig_${random()}`,
    qstashNextSigningKey: `sig_${random()}`,
    keys: Object.fromEntries(DEMO_KEY_NAMES.map((name) => [name, createApiKey().key])) as DemoKeys,
  }
}

/**
 * Reads the secrets of a local system, or makes them once. Members that an older version lacked are added.
 *
 * @param path a file with mode 0600 under a folder that git ignores
 * @throws StartError if the file is there but cannot be read as what it should be
 */
export function loadLocalSecrets(path: string): LocalSecrets {
  const held = readSecrets(path)
  const fresh = createLocalSecrets()
  const secrets = { ...fresh, ...held, keys: { ...fresh.keys, ...held?.keys } }
  if (JSON.stringify(secrets) !== JSON.stringify(held)) {
    writePrivateFile(path, `${JSON.stringify(secrets, null, 2)}\n`)
  }
  return secrets
}

function readSecrets(path: string): Partial<LocalSecrets> | null {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw new StartError(`${path} cannot be read: ${(error as Error).message}`)
  }
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed
  } catch {
    // Reported below: the message of JSON.parse would quote the file.
  }
  throw new StartError(`${path} is damaged; start with -- --fresh to begin anew`)
}
