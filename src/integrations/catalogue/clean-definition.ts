import * as z from 'zod'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import { redactJson, type Secrets } from '../../lib/secret-spellings.ts'
import type { OperationBinding, ToolDefinition } from '../types.ts'

/** A definition, as it is shown to models, with the hash that pins it. */
export interface PinnedDefinition {
  definition: ToolDefinition
  binding: OperationBinding | null
  hash: string
}

const LONGEST_NAME = 200
const LONGEST_TITLE = 200
/** Characters of a description; those in schemas have this limit too. */
const LONGEST_DESCRIPTION = 4_096
const LARGEST_SCHEMA = 64 * 1024
const DEEPEST_SCHEMA = 32

/** Characters that are read of a longer text, because many may be invisible. */
const READ_SHARE = 4
/** Characters that are kept beyond it until secrets were searched: one across that place would be shown without its end. */
const LONGEST_SECRET = 64 * 1024
const textUpTo = (longest: number) =>
  z
    .string()
    .transform((text) => text.slice(0, READ_SHARE * longest + LONGEST_SECRET))
    .optional()
    .catch(undefined)

const toolShape = z.object({
  name: z.string().min(1, 'it has no name').max(LONGEST_NAME, 'its name is too long'),
  title: textUpTo(LONGEST_TITLE),
  description: textUpTo(LONGEST_DESCRIPTION),
  inputSchema: z.record(z.string(), z.unknown(), 'it has no input schema'),
  outputSchema: z.record(z.string(), z.unknown()).optional().catch(undefined),
  annotations: z.record(z.string(), z.unknown()).optional().catch(undefined),
})

/** Hints of MCP (Tool, annotations); other members are dropped. */
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

/**
 * Cleans a tool of an upstream, and pins it. Text loses what people do not see but models read, and secrets of the
 * credential, since others see the tool as well; schemas may refer to nothing outside themselves.
 * @param binding of an operation, which is pinned with the definition.
 * @param credential with which the tool was listed.
 */
export function pinnedDefinition(
  tool: unknown,
  binding: OperationBinding | null = null,
  credential: Secrets = NO_SECRETS,
): PinnedDefinition | { reason: string } {
  const parsed = toolShape.safeParse(tool)
  if (!parsed.success) return { reason: parsed.error.issues[0]?.message ?? 'it is not a tool' }
  const { name, inputSchema, outputSchema } = parsed.data
  const problem =
    nameProblem(name) ?? inputProblem(inputSchema) ?? (outputSchema ? schemaProblem(outputSchema) : null)
  if (problem) return { reason: problem }
  // Before the cleaning, which may cut a secret in two, and after it, which may join one.
  const definition = redactJson(cleanDefinition(redactJson(parsed.data, credential)), credential)
  if (definition.name !== name) return { reason: 'its name has the credential of the connection' }
  const hash = sha256Hex(canonicalJson(binding === null ? definition : { definition, binding }))
  // The definition has the form in which it is stored and read again: without undefined members.
  return { definition: JSON.parse(canonicalJson(definition)), binding, hash }
}

function cleanDefinition(tool: z.infer<typeof toolShape>): ToolDefinition {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool
  const shownTitle = title ?? annotations?.title
  return {
    name,
    ...(typeof shownTitle === 'string' && { title: cleanText(shownTitle, LONGEST_TITLE) }),
    ...(description !== undefined && { description: cleanText(description, LONGEST_DESCRIPTION) }),
    inputSchema: objectSchema(inputSchema),
    // Clients of the legacy era refuse a whole list for an output schema that is not of an object.
    ...(outputSchema?.type === 'object' && { outputSchema: objectSchema(outputSchema) }),
    ...(annotations && { annotations: hintsOf(annotations) }),
  }
}

const NO_SECRETS: Secrets = { secrets: [] }

/** A name is sent back to the upstream, so it is refused rather than changed. */
function nameProblem(name: string): string | null {
  return cleanText(name, LONGEST_NAME) === name ? null : 'its name has invisible characters'
}

const hintsOf = (annotations: Record<string, unknown>) =>
  Object.fromEntries(
    HINTS.flatMap((hint) => (typeof annotations[hint] === 'boolean' ? [[hint, annotations[hint]]] : [])),
  )

/** Control characters but line feed and tab. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g
/**
 * Characters that are not seen: format characters (zero-width, bidirectional, tags), variation selectors, fillers, code
 * points without a character, and those whose form is blank (a Braille pattern without dots, a note without a head). Models
 * read them, and people who approve a definition do not see them.
 */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cf}|\p{Co}|\p{Cn}|[\u2800\u{1d159}\u{16fe4}]/gu
const LINE_BREAKS = /\r\n?|[\u2028\u2029]/g
const PLAIN = /^[\n\t -~]*$/

/**
 * Text of an upstream, without what is not seen, up to so many characters. Of a longer text, the beginning is read.
 * @internal Tests of linear time read long texts with it.
 */
export function cleanText(text: string, longest: number): string {
  const read = text.slice(0, READ_SHARE * longest)
  const visible = PLAIN.test(read)
    ? read
    : read.toWellFormed().replace(LINE_BREAKS, '\n').replace(CONTROLS, '').replace(INVISIBLE, '')
  const rest = withoutComments(visible)
  return rest.length <= longest ? rest : rest.slice(0, longest).toWellFormed()
}

const COMMENT_START = ['<', '!', '-', '-']

/** A comment without an end lasts to the end. */
function withoutComments(text: string): string {
  if (!text.includes('<!--')) return text
  const rest: string[] = []
  for (let at = 0; at < text.length; at++) {
    rest.push(text.charAt(at))
    // The rest is searched, since removing a comment can join the halves of another one.
    if (!COMMENT_START.every((character, index) => rest[rest.length - 4 + index] === character)) continue
    rest.length -= COMMENT_START.length
    const end = text.indexOf('-->', at + 1)
    if (end < 0) break
    at = end + 2
  }
  return rest.join('')
}

/** Members of a schema that are text for a reader. */
const SCHEMA_TEXTS = new Set(['description', 'title', '$comment'])

/** The schema with clean texts. `$comment` is for authors of schemas. */
function cleanSchema(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(cleanSchema)
  if (typeof value !== 'object' || value === null) {
    return typeof value === 'string' ? cleanText(value, LONGEST_DESCRIPTION) : value
  }
  const members = Object.entries(value)
    .filter(([name, member]) => !(name === '$comment' && typeof member === 'string'))
    .map(([name, member]) => {
      const longest = SCHEMA_TEXTS.has(name) ? LONGEST_DESCRIPTION : LARGEST_SCHEMA
      return [
        cleanText(name, LONGEST_DESCRIPTION),
        typeof member === 'string' ? cleanText(member, longest) : cleanSchema(member),
      ]
    })
  return Object.fromEntries(members)
}

/** Clients of the legacy era refuse a whole list for a property that is `true` or `false` in place of a schema. */
function objectSchema(schema: Record<string, unknown>): Record<string, unknown> {
  const { properties, ...rest } = cleanSchema(schema) as Record<string, unknown>
  if (!isRecord(properties)) return { ...rest, type: 'object' }
  const named = Object.entries(properties).map(([name, property]) => [
    name,
    isRecord(property) ? property : property === false ? { not: {} } : {},
  ])
  return { ...rest, type: 'object', properties: Object.fromEntries(named) }
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function inputProblem(schema: Record<string, unknown>): string | null {
  if (schema.type !== undefined && schema.type !== 'object') return 'its input is not an object'
  return schemaProblem(schema)
}

function schemaProblem(schema: Record<string, unknown>): string | null {
  // First, since what follows goes as deep as the schema.
  const problem = partProblem(schema, 0)
  if (problem) return problem
  if (JSON.stringify(schema).length > LARGEST_SCHEMA)
    return `its schema is larger than ${LARGEST_SCHEMA} characters`
  const { required } = schema
  const isNames = Array.isArray(required) && required.every((name) => typeof name === 'string')
  return required !== undefined && !isNames ? 'the required members of its schema are no names' : null
}

function partProblem(value: unknown, depth: number): string | null {
  if (typeof value !== 'object' || value === null) return null
  if (depth > DEEPEST_SCHEMA) return `its schema is deeper than ${DEEPEST_SCHEMA} levels`
  for (const [name, member] of Object.entries(value)) {
    const isReference = name === '$ref' || name === '$dynamicRef' || name === '$recursiveRef'
    if (isReference && typeof member === 'string' && !member.startsWith('#')) {
      return 'its schema refers to another document'
    }
    const problem = partProblem(member, depth + 1)
    if (problem) return problem
  }
  return null
}
