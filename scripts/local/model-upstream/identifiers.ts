import { randomBytes } from 'node:crypto'

// A random start per process, then a counter: unique, without a random read for each answer.
const processPart = randomBytes(8).toString('hex')
let counter = 0

/** A new id such as `chatcmpl-…` or `toolu_…`: the prefix, then 24 characters unique to this process. */
export function nextIdentifier(prefix: string): string {
  counter += 1
  return prefix + processPart + counter.toString(36).padStart(8, '0')
}

/** Now, in whole seconds since 1970, as OpenAI's `created` has it. */
export function nowInSeconds(): number {
  return Math.floor(Date.now() / 1000)
}
