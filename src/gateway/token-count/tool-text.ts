import { isPresent, type Json, objectOf, textOf } from '../translation/json.ts'

/**
 * A tool as OpenAI's models read it: a TypeScript type in the namespace `functions`, its descriptions as comments.
 * The form is that of the open models, and what callers measured of the others
 * (https://github.com/openai/harmony, https://cookbook.openai.com/articles/openai-harmony).
 * @param tool of the messages protocol.
 */
export function toolText(tool: Json): string {
  const schema = objectOf(tool.input_schema)
  const description = textOf(tool.description)
  const input = Object.keys(objectOf(schema.properties)).length > 0 ? `_: ${typeOf(schema)}` : ''
  return `${comment(description)}type ${textOf(tool.name)} = (${input}) => any;\n\n${remainder(schema)}`
}

/** @returns how many members the input of a tool has, those of its objects included. */
export function memberCount(schema: Json): number {
  const properties = Object.values(objectOf(schema.properties))
  const inner = [...properties, schema.items, ...choicesOf(schema)].filter(isPresent).map(objectOf)
  return properties.length + inner.reduce<number>((sum, value) => sum + memberCount(value), 0)
}

const choicesOf = (schema: Json): unknown[] => [schema.anyOf, schema.oneOf].find(Array.isArray) ?? []

/** Stands once around all tools. */
export const TOOLS_FRAME = '# Tools\n\n## functions\n\nnamespace functions {\n\n} // namespace functions'

const comment = (text: string) => (text === '' ? '' : `// ${text.split('\n').join('\n// ')}\n`)

function typeOf(schema: Json): string {
  const choices = choicesOf(schema)
  if (choices.length > 0) return choices.map((choice) => innerType(objectOf(choice))).join(' | ')
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (Array.isArray(schema.type)) return schema.type.map((type) => typeOf({ ...schema, type })).join(' | ')
  if (schema.type === 'object' || isPresent(schema.properties)) return objectType(schema)
  if (schema.type === 'array')
    return isPresent(schema.items) ? `${innerType(objectOf(schema.items))}[]` : 'any[]'
  return schema.type === 'integer' ? 'number' : textOf(schema.type) || 'any'
}

/** What is said of a type that is no member: whether a model is shown it is not told. */
const innerType = (schema: Json): string =>
  `${comment(textOf(schema.description))}${typeOf(schema)}${remainder(schema)}`

function objectType(schema: Json): string {
  const required = new Set(Array.isArray(schema.required) ? schema.required : [])
  const members = Object.entries(objectOf(schema.properties)).map(([name, value]) =>
    memberText(required.has(name) ? name : `${name}?`, objectOf(value)),
  )
  return members.length === 0 ? 'object' : `{\n${members.join('')}}`
}

function memberText(name: string, schema: Json): string {
  const title = textOf(schema.title)
  const about = `${title === '' ? '' : `${comment(title)}//\n`}${comment(textOf(schema.description))}`
  return `${about}${examplesText(schema.examples)}${name}: ${typeOf(schema)},${defaultText(schema.default)}\n${remainder(schema)}`
}

const defaultText = (value: unknown) => (value === undefined ? '' : ` // default: ${JSON.stringify(value)}`)

const examplesText = (examples: unknown) =>
  Array.isArray(examples) && examples.length > 0
    ? `// Examples:\n${examples.map((example) => `// - ${JSON.stringify(example)}\n`).join('')}`
    : ''

/** Keywords that the type shows, and those that no model is shown. */
const SHOWN = new Set(
  'type properties required items anyOf oneOf enum const title description examples default nullable'.split(
    ' ',
  ),
)
const NEVER_SHOWN = new Set(['$schema', '$id', 'additionalProperties', 'strict'])

/** Which of the other keywords are shown is not told: they count, as a comment each. */
function remainder(schema: Json): string {
  return Object.entries(schema)
    .filter(([name, value]) => !SHOWN.has(name) && !NEVER_SHOWN.has(name) && isPresent(value))
    .map(([name, value]) => `// ${name}: ${JSON.stringify(value)}\n`)
    .join('')
}
