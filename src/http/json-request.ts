import type * as z from 'zod'
import { invalidRequest } from '../lib/api-error.ts'
import { scanJsonInSlices } from '../lib/json-scan.ts'
import { hasTooManyValues, MOST_JSON_VALUES } from '../lib/json-values.ts'
import { type JsonKind, type JsonPath, JsonSyntaxError } from '../lib/json-visitor.ts'
import { runSlices, type Slices } from '../lib/slices.ts'
import type { AppContext } from './context.ts'
import { readGovernedBody } from './governed-body.ts'
import { explain } from './validated-request.ts'

/** Up to this size a body is parsed as it is. */
const SMALL_BYTES = 64 * 1024
/** Bytes of a member that an endpoint reads, as the inputs of a run (`runs/run-inputs`). */
const MOST_MEMBER_BYTES = 10_000_000

/**
 * Reads and checks the JSON body of an authenticated request, counted while it is read. A parsed body takes many times the bytes of
 * its text: of a large one only the members of the schema are parsed, within bounds of their own.
 * @throws ApiError as `readGovernedBody`; invalid_request naming every member that does not fit, and why.
 */
export async function readJson<Schema extends z.ZodObject>(
  context: AppContext,
  schema: Schema,
): Promise<z.infer<Schema>> {
  const body = await readGovernedBody(context)
  try {
    return checkedJson(await runSlices(textOf(body.bytes, new Set(Object.keys(schema.shape)))), schema)
  } finally {
    body.release()
  }
}

/** Checks the text of a JSON body. @throws ApiError invalid_request naming every member that does not fit, and why. */
export function checkedJson<Schema extends z.ZodType>(text: string, schema: Schema): z.infer<Schema> {
  const value = parse(text)
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  throw explain(parsed.error.issues, value, 'body')
}

/** The text of a body; of a large one that of an object with the known members, and null in place of the first other one. */
function* textOf(bytes: Uint8Array, known: ReadonlySet<string>): Slices<string> {
  if (bytes.length <= SMALL_BYTES) return decode(bytes)
  const members = new KnownMembers(known)
  try {
    yield* scanJsonInSlices(bytes, members)
  } catch (error) {
    throw error instanceof JsonSyntaxError ? notJson() : error
  }
  if (members.rootKind !== 'object') throw invalidRequest('The body must be a JSON object.')
  const texts = members.other === null ? [] : [`${JSON.stringify(members.other.slice(0, 100))}:null`]
  for (const { name, start, end } of members.found) {
    if (end - start > MOST_MEMBER_BYTES) {
      throw invalidRequest(`${name}: may have at most ${MOST_MEMBER_BYTES} bytes.`)
    }
    const value = bytes.subarray(start, end)
    if (yield* hasTooManyValues(value)) {
      throw invalidRequest(`${name}: may hold at most ${MOST_JSON_VALUES} values.`)
    }
    texts.push(`${JSON.stringify(name)}:${decode(value)}`)
  }
  return `{${texts.join()}}`
}

/** The places of the members that are read. When a name is given twice, the last one counts, as in a parsed body. */
class KnownMembers {
  rootKind: JsonKind | null = null
  other: string | null = null
  readonly #known: ReadonlySet<string>
  readonly #found = new Map<string, { name: string; start: number; end: number }>()

  constructor(known: ReadonlySet<string>) {
    this.#known = known
  }

  get found() {
    return this.#found.values()
  }

  value(path: JsonPath, kind: JsonKind, start: number, end: number): void {
    if (path.length === 0) {
      this.rootKind = kind
      return
    }
    const name = String(path[0])
    if (this.#known.has(name)) this.#found.set(name, { name, start, end })
    else this.other ??= name
  }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes)
  } catch {
    throw invalidRequest('The body is not valid UTF-8.')
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notJson()
  }
}

const notJson = () => invalidRequest('The body is not valid JSON.')
