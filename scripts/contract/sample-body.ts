type Schema = Record<string, unknown>

/** Texts of which one fits each pattern and format of the documents. */
const TEXTS = [
  'a',
  '0',
  '2027-01-01',
  '2999-01-01T00:00:00Z',
  'person@example.com',
  'https://example.com',
  '00000000-0000-4000-8000-000000000000',
  'conn_a',
  '0 0 * * *',
  '0'.repeat(64),
]

const FORMATS: Record<string, RegExp> = {
  email: /@/,
  date: /^\d{4}-\d\d-\d\d$/,
  'date-time': /T.*Z$/,
  uri: /^https:/,
}

/** Makes the least value that fits a schema of a document: required members alone. */
export class BodySampler {
  readonly #schemas: Record<string, Schema>
  readonly #known: Readonly<Record<string, string>>

  /** @param known values of members that hold ids, by the names of the parameters that take them. */
  constructor(schemas: Record<string, Schema>, known: Readonly<Record<string, string>>) {
    this.#schemas = schemas
    this.#known = known
  }

  /** @throws for a schema that nothing here fits. */
  sample(schema: Schema, name = ''): unknown {
    if (typeof schema.$ref === 'string') {
      const id = schema.$ref.slice('#/components/schemas/'.length)
      return this.sample(this.#schemas[id] ?? {}, name)
    }
    if ('const' in schema) return schema.const
    if (Array.isArray(schema.enum)) return schema.enum[0]
    if (schema.type === 'object') return this.#object(schema)
    const branches = (schema.oneOf ?? schema.anyOf) as Schema[] | undefined
    if (branches) return this.sample(branches[0] ?? {}, name)
    if (schema.type === 'array') return this.#array(schema)
    if (schema.type === 'integer' || schema.type === 'number') return Math.max(Number(schema.minimum ?? 1), 1)
    if (schema.type === 'boolean') return true
    if (schema.type === 'string') return this.#text(schema, name)
    return null
  }

  #object({
    properties = {},
    required = [],
    oneOf = [],
    minProperties = 0,
  }: Schema): Record<string, unknown> {
    const [first] = oneOf as Array<{ required?: string[] }>
    const members = properties as Record<string, Schema>
    const needed = [...(required as string[]), ...(first?.required ?? [])]
    const names = needed.length < Number(minProperties) ? Object.keys(members) : needed
    return Object.fromEntries(names.map((name) => [name, this.sample(members[name] ?? {}, name)]))
  }

  #array({ minItems = 0, items = {} }: Schema): unknown[] {
    return Array.from({ length: Number(minItems) }, () => this.sample(items as Schema))
  }

  #text({ pattern = '', format = '' }: Schema, name: string): string {
    const known = this.#known[name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase())]
    if (known !== undefined) return known
    const fits = new RegExp(String(pattern), 'u')
    const text = TEXTS.find((each) => fits.test(each) && (FORMATS[String(format)]?.test(each) ?? true))
    if (text === undefined) throw new Error(`no sample of ${name} fits ${pattern} ${format}`)
    return text
  }
}
