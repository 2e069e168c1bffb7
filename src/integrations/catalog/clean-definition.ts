import { z } from 'zod'
import { canonicalJson } from '../../lib/canonical-json.ts'
import { sha256Hex } from '../../lib/crypto.ts'
import type { OperationBinding, ToolDefinition } from '../types.ts'

/** A definition, as it is shown to models, with the hash that pins it. */
export interface PinnedDefinition {
  definition: ToolDefinition
  binding: OperationBinding | null
  hash: string
}

/** Why a tool is not offered. It quotes nothing of the upstream's. */
export interface RejectedTool {
  /** Place in the upstream's list, from 0. */
  index: number
  reason: string
}

const LONGEST_NAME = 200
const LONGEST_TITLE = 200
/** Characters of a description; those in schemas have this limit too. */
const LONGEST_DESCRIPTION = 4_096
const LARGEST_SCHEMA = 64 * 1024
const DEEPEST_SCHEMA = 32

const toolShape = z.object({
  name: z.string().min(1, 'it has no name').max(LONGEST_NAME, 'its name is too long'),
  title: z.string().optional().catch(undefined),
  description: z.string().optional().catch(undefined),
  inputSchema: z.record(z.string(), z.unknown(), 'it has no input schema'),
  outputSchema: z.record(z.string(), z.unknown()).optional().catch(undefined),
  annotations: z.record(z.string(), z.unknown()).optional().catch(undefined),
})

/** Hints of MCP (Tool, annotations); other members are dropped. */
const HINTS = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'] as const

/**
 * Cleans a tool of an upstream, and pins it. Text loses what people do not see but models read; schemas may refer to nothing
 * outside themselves.
 * @param binding of an operation, which is pinned with the definition.
 */
export function pinnedDefinition(
  tool: unknown,
  binding: OperationBinding | null = null,
): PinnedDefinition | { reason: string } {
  const parsed = toolShape.safeParse(tool)
  if (!parsed.success) return { reason: parsed.error.issues[0]?.message ?? 'it is not a tool' }
  const { name, title, description, inputSchema, outputSchema, annotations } = parsed.data
  const problem =
    nameProblem(name) ?? inputProblem(inputSchema) ?? (outputSchema ? schemaProblem(outputSchema) : null)
  if (problem) return { reason: problem }
  const shownTitle = title ?? annotations?.title
  const definition: ToolDefinition = {
    name,
    ...(typeof shownTitle === 'string' && { title: cleanText(shownTitle, LONGEST_TITLE) }),
    ...(description !== undefined && { description: cleanText(description, LONGEST_DESCRIPTION) }),
    inputSchema: objectSchema(inputSchema),
    // Clients of the legacy era refuse a whole list for an output schema that is not of an object.
    ...(outputSchema?.type === 'object' && { outputSchema: objectSchema(outputSchema) }),
    ...(annotations && { annotations: hintsOf(annotations) }),
  }
  const hash = sha256Hex(canonicalJson(binding === null ? definition : { definition, binding }))
  // As it is stored and read again: without members that are undefined.
  return { definition: JSON.parse(canonicalJson(definition)), binding, hash }
}

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
 * Characters without a width: format characters (zero-width, bidirectional, tags), variation selectors, fillers, and code
 * points without a character. Models read them, and people who approve a definition do not see them.
 */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|\p{Cf}|\p{Co}|\p{Cn}/gu
const COMMENT = /<!--[\s\S]*?(?:-->|$)/g

/** Text of an upstream, without what is not seen, up to so many characters. */
export function cleanText(text: string, longest: number): string {
  const visible = text.toWellFormed().replace(/\r\n?/g, '\n').replace(CONTROLS, '').replace(INVISIBLE, '')
  // A comment that is cut out can join the halves of another one.
  let rest = visible
  for (let before = ''; before !== rest; ) {
    before = rest
    rest = rest.replace(COMMENT, '')
  }
  return rest.length <= longest ? rest : rest.slice(0, longest).toWellFormed()
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
  if (JSON.stringify(schema).length > LARGEST_SCHEMA)
    return `its schema is larger than ${LARGEST_SCHEMA} characters`
  const { required } = schema
  const isNames = Array.isArray(required) && required.every((name) => typeof name === 'string')
  if (required !== undefined && !isNames) return 'the required members of its schema are no names'
  return partProblem(schema, 0)
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
