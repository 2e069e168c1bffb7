import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

// Not a secret: it only distinguishes this upstream's signatures from others, also after a restart.
const signingKey = 'scripted model upstream'
const seedBytes = 16
const digestBytes = 32
const signatureBytes = seedBytes + 2 * digestBytes
const redactedPrefix = 'redacted.'

/** Signatures and redacted data of registered scripts, which count as issued too. */
const learned = new Set<string>()
const maximumLearned = 10_000

/**
 * The signature of a thinking block: the same for the same seed and text. It covers the text, and identifies a block
 * whose text is left out (`display: omitted`).
 *
 * @param seed anything that distinguishes one block from another
 */
export function issueSignature(thinking: string, seed: string): string {
  const nonce = createHash('sha256').update(`${seed}\0${thinking}`).digest().subarray(0, seedBytes)
  return Buffer.concat([nonce, digest(nonce), digest(nonce, thinking)]).toString('base64')
}

/** The data of a redacted thinking block. */
export function issueRedactedData(seed: string): string {
  return redactedPrefix + issueSignature('', seed)
}

/** Whether this upstream issued `signature` for a block with this text, or with its text left out. */
export function isIssued(signature: string, thinking: string): boolean {
  if (learned.has(signature)) return true
  const bytes = Buffer.from(signature, 'base64')
  if (bytes.length !== signatureBytes || bytes.toString('base64') !== signature) return false
  const nonce = bytes.subarray(0, seedBytes)
  const own = bytes.subarray(seedBytes, seedBytes + digestBytes)
  if (!timingSafeEqual(own, digest(nonce))) return false
  return thinking === '' || timingSafeEqual(bytes.subarray(seedBytes + digestBytes), digest(nonce, thinking))
}

/** Whether this upstream issued the data of a redacted thinking block. */
export function isIssuedRedactedData(data: string): boolean {
  if (learned.has(data)) return true
  return data.startsWith(redactedPrefix) && isIssued(data.slice(redactedPrefix.length), '')
}

/** Takes the signatures and redacted data in the JSON text of a registered script as issued by this upstream. */
export function learnSignatures(script: string): void {
  // In a frame inside a JSON string the quotes are escaped, in a step of whole events they are not.
  for (const [, , value = ''] of script.matchAll(/(\\?)"(?:signature|data)\1"\s*:\s*\1"([^"\\]+)\1"/g)) {
    if (learned.size >= maximumLearned) learned.clear()
    learned.add(value)
  }
}

function digest(nonce: Buffer, text?: string): Buffer {
  const hash = createHmac('sha256', signingKey).update(nonce)
  return (text === undefined ? hash : hash.update(`\0${text}`)).digest()
}
