import { randomBytes } from 'node:crypto'
import { readSecretsFile, type SecretValues, UPLOADED_SECRETS, writeSecretsFile } from './secrets.ts'

/** Objects run the code and the secrets of the version before for up to 30 minutes (`code_update_strategy`). */
export const OLD_OBJECTS_MINUTES = 30

/** Member of the file with a value that no deployment has brought to all traffic yet. */
const pendingName = (name: string): string => `${name}.new`

/** Names of the secrets whose rotation was begun and has not ended. @throws DeployError if the file is damaged */
export function pendingRotations(file: string): string[] {
  const stored = readSecretsFile(file)
  return UPLOADED_SECRETS.filter((name) => stored[pendingName(name)] !== undefined)
}

/**
 * Gives a generated secret its next value, beside the present one: that stays the one of the script when the deployment is rolled
 * back. A value of an earlier try is used again.
 *
 * @returns what is left to do; null if nothing is
 */
export function rotateSecret(name: string, file: string, secrets: SecretValues): string | null {
  const stored = readSecretsFile(file)
  const present = secrets.get(name)
  const isRing = name !== 'ADMIN_TOKEN'
  const made = isRing
    ? nextRing(present ?? '', randomBytes(32))
    : `hga_${randomBytes(32).toString('base64url')}`
  const next = stored[pendingName(name)] ?? made
  writeSecretsFile(file, { ...stored, [pendingName(name)]: next })
  secrets.replace(name, next, 'generated')
  if (!isRing || newestFirst(next)) return null
  return `${name} has its new pair last, which every version can read now; run --rotate ${name} again after ${OLD_OBJECTS_MINUTES} minutes to put it first`
}

/** Stores the new values as the present ones. @param names of generated secrets that a deployment brought to all traffic */
export function finishRotations(names: readonly string[], file: string): void {
  if (names.length === 0) return
  const stored = { ...readSecretsFile(file) }
  for (const name of names) {
    const next = stored[pendingName(name)]
    if (next === undefined) continue
    stored[name] = next
    delete stored[pendingName(name)]
  }
  writeSecretsFile(file, stored)
}

/**
 * The next form of a ring of `<id>:<key>` pairs, whose first pair makes new values. Two versions serve while traffic is divided, and
 * the older one must read what the newer one makes. So a new pair is added last, and the next rotation puts it first.
 *
 * @param key of a new pair, 32 bytes
 */
export function nextRing(ring: string, key: Uint8Array): string {
  const pairs = ring.split(',').map((pair) => pair.trim())
  const newest = newestOf(pairs)
  const [first = ''] = pairs
  if (newest !== first) return [newest, ...pairs.filter((pair) => pair !== newest)].join(',')
  const prefix = /^[a-z_-]*/i.exec(first)?.[0] || 'k'
  return [...pairs, `${prefix}${numberOf(first) + 1}:${Buffer.from(key).toString('base64')}`].join(',')
}

const newestFirst = (ring: string): boolean => {
  const pairs = ring.split(',')
  return newestOf(pairs) === pairs[0]
}

/** The pair with the greatest number in its id; the first one among equals. */
const newestOf = ([first = '', ...others]: string[]): string =>
  others.reduce((newest, pair) => (numberOf(pair) > numberOf(newest) ? pair : newest), first)

/** `p2:…` has 2. An id without a number is older than any that has one. */
const numberOf = (pair: string): number => Number(/^[^:]*?(\d+):/.exec(pair)?.[1] ?? 0)
