import * as z from 'zod'

type JsonSchema = Record<string, unknown>

/** Collects the named schemas of one document (`components.schemas`). */
export class SchemaComponents {
  readonly #schemas = new Map<string, JsonSchema>()

  /**
   * The JSON Schema of a value that the gateway reads (`input`) or gives (`output`), with references to the schemas that have an id.
   * @throws when two schemas share an id
   */
  schemaOf(schema: z.ZodType, io: 'input' | 'output'): JsonSchema {
    // The schema of a member is a reference where it has an id; that of the whole would be written out.
    const { properties, $defs = {} } = z.toJSONSchema(z.object({ value: schema }), {
      io,
      unrepresentable: 'any',
    }) as unknown as { properties: { value: JsonSchema }; $defs?: Record<string, JsonSchema> }
    for (const [id, definition] of Object.entries($defs)) this.#add(id, withReferences(definition))
    return withReferences(properties.value)
  }

  #add(id: string, { id: _, ...definition }: JsonSchema): void {
    const known = this.#schemas.get(id)
    if (known && JSON.stringify(known) !== JSON.stringify(definition)) {
      throw new Error(`two schemas have the id ${id}`)
    }
    this.#schemas.set(id, definition)
  }

  /** Adds a schema that is written by hand. @returns a reference to it */
  add(id: string, definition: JsonSchema): JsonSchema {
    this.#add(id, definition)
    return { $ref: `#/components/schemas/${id}` }
  }

  /** The schemas, in order of their ids. */
  get schemas(): Record<string, JsonSchema> {
    return Object.fromEntries([...this.#schemas].sort(([left], [right]) => (left < right ? -1 : 1)))
  }
}

function withReferences(value: JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(value).replaceAll('"#/$defs/', '"#/components/schemas/'))
}

/** The parameters of a query, one for each member of its schema. */
export function queryParameters(
  components: SchemaComponents,
  query: z.ZodObject | undefined,
): Array<{ name: string }> {
  if (!query) return []
  const { properties = {}, required = [] } = components.schemaOf(query, 'input') as {
    properties?: Record<string, JsonSchema>
    required?: string[]
  }
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: 'query',
    required: required.includes(name),
    schema,
  }))
}

/** The content of a JSON body. */
export const jsonContent = (schema: JsonSchema) => ({ 'application/json': { schema } })
