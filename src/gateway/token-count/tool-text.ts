import { isPresent, type Json, objectOf, textOf } from '../translation/json.ts'

/**
 * A tool as rendered for OpenAI's models: a TypeScript type in the namespace `functions`, its descriptions as comments.
 * The format is that of the open models, and agrees with callers' measurements of the others
 * (https://github.com/openai/harmony, https://cookbook.openai.com/articles/openai-harmony).
 * Every keyword of a schema is written once, so that text and work are linear in the schema.
 *
 * @param tool of the messages protocol, no deeper than a scanned body may be.
 * @param longest characters that the text may have.
 * @returns null when it would be longer.
 */
export function toolText(tool: Json, longest: number): string | null {
  const writer = new ToolWriter(longest)
  writer.tool(tool)
  return writer.text()
}

/** @returns how many members the input of a tool has, those of its objects included. */
export function memberCount(schema: Json): number {
  const properties = Object.values(objectOf(schema.properties))
  const inner = [...properties, schema.items, ...CHOICES.flatMap((name) => choicesOf(schema, name))]
  return inner
    .filter(isPresent)
    .map(objectOf)
    .reduce<number>((sum, value) => sum + memberCount(value), properties.length)
}

/** Text around all tools. */
export const TOOLS_FRAME = '# Tools\n\n## functions\n\nnamespace functions {\n\n} // namespace functions'

const CHOICES = ['anyOf', 'oneOf'] as const
/** Keywords that define a type; of several in a schema the first one is rendered. */
type Form = (typeof CHOICES)[number] | 'enum' | 'const' | 'type'

/** Keywords that are rendered in one form only. In other forms they count like keywords of unknown rendering. */
const SHOWN_BY: Record<Form, readonly string[]> = {
  anyOf: ['anyOf'],
  oneOf: ['oneOf'],
  enum: ['enum'],
  const: ['const'],
  type: ['properties', 'items', 'required'],
}
const SHOWN_OF_MEMBERS = ['title', 'examples', 'default']
/** Keywords that are rendered in every form, and those that are never rendered. */
const NEVER_COUNTED = new Set([
  ...['type', 'description', 'nullable'],
  ...['$schema', '$id', 'additionalProperties', 'strict'],
])

const choicesOf = (schema: Json, name: (typeof CHOICES)[number]): unknown[] =>
  Array.isArray(schema[name]) ? schema[name] : []

function formOf(schema: Json): Form {
  const choices = CHOICES.find((name) => choicesOf(schema, name).length > 0)
  if (choices) return choices
  if (Array.isArray(schema.enum)) return 'enum'
  return schema.const === undefined ? 'type' : 'const'
}

/** The types of a schema without duplicates: each would render its members again. */
function typesOf(schema: Json): string[] {
  const given = Array.isArray(schema.type) ? schema.type : [schema.type]
  const types = new Set(given.map(textOf).filter((type) => type !== ''))
  if (isPresent(schema.properties)) types.add('object')
  if (isPresent(schema.items)) types.add('array')
  return types.size === 0 ? ['any'] : [...types]
}

/** Appends to one list: nested strings would be copied once for each level. */
class ToolWriter {
  readonly #pieces: string[] = []
  #room: number

  constructor(longest: number) {
    this.#room = longest
  }

  text(): string | null {
    return this.#room < 0 ? null : this.#pieces.join('')
  }

  tool(tool: Json): void {
    const schema = objectOf(tool.input_schema)
    this.#comment(textOf(tool.description))
    this.#write(`type ${textOf(tool.name)} = (`)
    if (Object.keys(objectOf(schema.properties)).length > 0 || formOf(schema) !== 'type') {
      this.#write('_: ')
      this.#type(schema)
    }
    this.#write(') => any;\n\n')
    this.#comment(textOf(schema.description))
    this.#remainder(schema, [])
  }

  #write(text: string): void {
    this.#room -= text.length
    if (this.#room >= 0) this.#pieces.push(text)
  }

  #comment(text: string): void {
    if (text !== '') this.#write(`// ${text.replaceAll('\n', '\n// ')}\n`)
  }

  /** Every entry of a list, with a separator. */
  #each(list: readonly unknown[], between: string, write: (entry: unknown) => void): void {
    for (const [index, entry] of list.entries()) {
      if (this.#room < 0) return
      if (index > 0) this.#write(between)
      write(entry)
    }
  }

  #type(schema: Json): void {
    if (this.#room < 0) return
    const form = formOf(schema)
    if (form === 'const') this.#write(JSON.stringify(schema.const))
    else if (form === 'enum') {
      this.#each(schema.enum as unknown[], ' | ', (value) => this.#write(JSON.stringify(value)))
    } else if (form === 'type') {
      this.#each(typesOf(schema), ' | ', (type) => this.#oneType(schema, type))
    } else this.#each(choicesOf(schema, form), ' | ', (choice) => this.#inner(objectOf(choice)))
  }

  #oneType(schema: Json, type: unknown): void {
    if (type === 'object') this.#object(schema)
    else if (type === 'array') {
      if (isPresent(schema.items)) this.#inner(objectOf(schema.items))
      else this.#write('any')
      this.#write('[]')
    } else this.#write(type === 'integer' ? 'number' : textOf(type))
  }

  /** A type that is no member. Whether its description is rendered is not published: it counts. */
  #inner(schema: Json): void {
    this.#comment(textOf(schema.description))
    this.#type(schema)
    this.#remainder(schema, [])
  }

  #object(schema: Json): void {
    const required = new Set(Array.isArray(schema.required) ? schema.required : [])
    const members = Object.entries(objectOf(schema.properties))
    this.#write(members.length === 0 ? 'object' : '{\n')
    for (const [name, value] of members) {
      if (this.#room < 0) return
      this.#member(required.has(name) ? name : `${name}?`, objectOf(value))
    }
    if (members.length > 0) this.#write('}')
  }

  #member(name: string, schema: Json): void {
    const title = textOf(schema.title)
    this.#comment(title)
    if (title !== '') this.#write('//\n')
    this.#comment(textOf(schema.description))
    if (Array.isArray(schema.examples) && schema.examples.length > 0) {
      this.#write('// Examples:\n')
      this.#each(schema.examples, '', (example) => this.#write(`// - ${JSON.stringify(example)}\n`))
    }
    this.#write(`${name}: `)
    this.#type(schema)
    const { default: value } = schema
    this.#write(value === undefined ? ',\n' : `, // default: ${JSON.stringify(value)}\n`)
    this.#remainder(schema, SHOWN_OF_MEMBERS)
  }

  /** Whether other keywords are rendered is not published: each counts as a comment. */
  #remainder(schema: Json, shown: readonly string[]): void {
    if (this.#room < 0) return
    const shownByForm = SHOWN_BY[formOf(schema)]
    for (const [name, value] of Object.entries(schema)) {
      const isShown = NEVER_COUNTED.has(name) || shown.includes(name)
      // `items` may be a list of schemas, which the type does not render.
      const isInType = shownByForm.includes(name) && !(name === 'items' && Array.isArray(value))
      if (!isShown && !isInType && isPresent(value)) this.#write(`// ${name}: ${JSON.stringify(value)}\n`)
    }
  }
}
