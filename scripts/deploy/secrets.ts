import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { configurationSchema } from '../../src/env.ts'
import { writePrivateFile } from '../node/private-file.ts'
import { DeployError } from './deploy-error.ts'

/** Generated when missing. Losing a pepper or a key of the vault loses what was made with it. */
const GENERATED = ['ADMIN_TOKEN', 'KEY_PEPPERS', 'VAULT_KEYS'] as const

/** Without these the Worker answers nothing. */
const GIVEN = ['DATABASE_URL', 'UPSTASH_REDIS_REST_TOKEN'] as const

/** Uploaded if they are given. */
const OPTIONAL = [
  'QSTASH_TOKEN',
  'QSTASH_CURRENT_SIGNING_KEY',
  'QSTASH_NEXT_SIGNING_KEY',
  'SEARCH_API_KEY',
  'NANGO_SECRET_KEY',
] as const

/** Refused on a deployed Worker. */
const LOCAL_ONLY = ['LOCAL_SIGN_IN'] as const

/** Every secret of the gateway that a deployment uploads, in the order of the plan. */
export const UPLOADED_SECRETS: readonly string[] = [...GIVEN, ...GENERATED, ...OPTIONAL]

export const isGenerated = (name: string): boolean => (GENERATED as readonly string[]).includes(name)
export const isRequired = (name: string): boolean =>
  isGenerated(name) || (GIVEN as readonly string[]).includes(name)
export const isSecretName = (name: string): boolean => [...UPLOADED_SECRETS, ...LOCAL_ONLY].includes(name)

/** Read by the deployment itself, and never uploaded. */
export const SMOKE_TEST_KEY = 'SMOKE_TEST_KEY'

export type SecretSource = 'environment' | 'file' | 'Neon' | 'Upstash' | 'generated'

/** Values of secrets by name, with where each comes from. A plan holds names and sources only. */
export class SecretValues {
  readonly #values = new Map<string, { value: string; source: SecretSource }>()
  readonly #replaced: string[] = []

  /** Adds a value. One that is known already wins. */
  add(name: string, value: string, source: SecretSource): void {
    if (value !== '' && !this.#values.has(name)) this.#values.set(name, { value, source })
  }

  /** Sets another value. The one before stays known to `redact`. */
  replace(name: string, value: string, source: SecretSource): void {
    const before = this.#values.get(name)
    if (before !== undefined) this.#replaced.push(before.value)
    this.#values.set(name, { value, source })
  }

  get(name: string): string | undefined {
    return this.#values.get(name)?.value
  }

  source(name: string): SecretSource | undefined {
    return this.#values.get(name)?.source
  }

  /**
   * Replaces every known value in a text, also as it stands in JSON and in addresses. The password of a connection string is
   * a secret by itself.
   */
  redact(text: string): string {
    const known = [...[...this.#values.values()].map(({ value }) => value), ...this.#replaced]
    const values = known.flatMap((value) => [value, ...passwordOf(value)])
    const forms = values.flatMap((value) => [
      value,
      JSON.stringify(value).slice(1, -1),
      encodeURIComponent(value),
    ])
    return forms
      .filter((form) => form.length >= 6)
      .sort((left, right) => right.length - left.length)
      .reduce((redacted, form) => redacted.replaceAll(form, '[secret]'), text)
  }
}

const passwordOf = (value: string): string[] =>
  URL.canParse(value) && new URL(value).password !== '' ? [new URL(value).password] : []

/** Reads secrets from the environment, then from the file, which need not exist. @throws DeployError if it is damaged */
export function readSecrets(environment: NodeJS.ProcessEnv, file: string): SecretValues {
  const secrets = new SecretValues()
  const fromFile = readSecretsFile(file)
  for (const name of [...UPLOADED_SECRETS, SMOKE_TEST_KEY]) {
    secrets.add(name, environment[name] ?? '', 'environment')
    secrets.add(name, fromFile[name] ?? '', 'file')
  }
  return secrets
}

/**
 * Generates a secret and writes it into the file, with mode 0600, before anything uses it: a deployment that is cut after the
 * upload must find the same value again.
 */
export function generateSecret(name: string, file: string, secrets: SecretValues): void {
  if (secrets.get(name) !== undefined) return
  const value = newSecret(name)
  writeSecretsFile(file, { ...readSecretsFile(file), [name]: value })
  secrets.add(name, value, 'generated')
}

function newSecret(name: string): string {
  if (name === 'ADMIN_TOKEN') return `hga_${randomBytes(32).toString('base64url')}`
  // Ids of pairs; a rotation adds p2 or v2.
  return `${name === 'KEY_PEPPERS' ? 'p1' : 'v1'}:${randomBytes(32).toString('base64')}`
}

/** @returns the members of the file; none without it @throws DeployError if it cannot be read or is damaged */
export function readSecretsFile(file: string): Record<string, string> {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new DeployError(`${file} cannot be read`)
  }
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, string>
  } catch {
    // Reported below: the message of JSON.parse would quote the file.
  }
  throw new DeployError(`${file} is damaged: it must be a JSON object of names and values`)
}

/** Writes the file of secrets, with mode 0600. It is on the disk before this returns. */
export function writeSecretsFile(file: string, values: Readonly<Record<string, string>>): void {
  writePrivateFile(file, `${JSON.stringify(values, null, 2)}\n`)
}

/** Placeholders of the right form, to check the variables of a configuration whose secrets cannot be read back. */
export function placeholderSecrets(): Record<string, string> {
  const ring = `x:${Buffer.alloc(32).toString('base64')}`
  const placeholders: Record<string, string> = {
    DATABASE_URL: 'postgres://x',
    KEY_PEPPERS: ring,
    VAULT_KEYS: ring,
  }
  const others = UPLOADED_SECRETS.filter((name) => name in configurationSchema.shape)
  return { ...Object.fromEntries(others.map((name) => [name, 'x'.repeat(16)])), ...placeholders }
}
