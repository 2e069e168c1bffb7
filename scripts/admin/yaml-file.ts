import { parse } from 'yaml'
import { usageError } from './errors.ts'
import type { Item } from './gateway.ts'

/** Characters of a file: those that the gateway takes of an OpenAPI document. */
const LONGEST_TEXT = 5_000_000
/** Levels of lists and objects. The gateway cuts schemas long before. */
const DEEPEST = 200

/**
 * The object of a file in YAML 1.2, of which JSON is a part. What it gives can be sent as JSON: a file that grows by its aliases,
 * contains itself, or is nested without end is refused.
 * @param path for messages. @param mostAliases how often anchors may be repeated, nested ones multiplied.
 * @throws AdminError saying what is wrong.
 */
export function yamlObject(path: string, text: string, mostAliases: number): Item {
  if (text.length > LONGEST_TEXT) {
    throw usageError(`${path} has ${text.length} characters, and may have ${LONGEST_TEXT}`)
  }
  const value = isJson(text) ? (JSON.parse(text) as unknown) : parsed(path, text, mostAliases)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw usageError(`${path} does not hold an object in YAML or JSON`)
  }
  const reason = unsendable(value)
  if (reason !== null) throw usageError(`${path} cannot be sent: it ${reason}`)
  return value as Item
}

/** JSON is read by its own parser, which takes a hundredth of the time. */
function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function parsed(path: string, text: string, mostAliases: number): unknown {
  try {
    return parse(text, { maxAliasCount: mostAliases, logLevel: 'error' })
  } catch (error) {
    // The parser is recursive.
    const reason = error instanceof RangeError ? 'is nested too deeply' : messageOf(error)
    throw usageError(`${path} is not valid YAML: ${reason}`)
  }
}

const messageOf = (error: unknown) => (error as Error).message.split('\n', 1)[0]

/** Why a value has no JSON of bounded size; null if it has one. Each repetition of an anchor counts. */
function unsendable(root: object): string | null {
  const waiting: Array<{ value: object; depth: number }> = [{ value: root, depth: 1 }]
  let members = 0
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { value, depth } = next
    if (depth > DEEPEST) return `has more than ${DEEPEST} levels`
    for (const member of Object.values(value)) {
      members += 1
      if (members > LONGEST_TEXT) return 'grows too large by its aliases'
      if (typeof member === 'object' && member !== null) waiting.push({ value: member, depth: depth + 1 })
    }
  }
  return null
}
