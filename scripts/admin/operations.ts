import document from '../../public/api/openapi.json' with { type: 'json' }
import { ENDPOINTS, type EndpointName } from '../../src/wire/endpoints/endpoints.ts'

// What the OpenAPI document says of the endpoints, as far as a command line needs it.

/** A member of a query or a body. */
export interface Member {
  name: string
  in: 'query' | 'body'
  /** `json`: an object or a list of objects, which no option can give. */
  kind: 'text' | 'number' | 'flag' | 'texts' | 'json'
  /** Whether it may be null, for which an option takes `none`. */
  nullable: boolean
  choices: readonly string[]
  /** What the gateway takes where it is left out. */
  preset: string | undefined
  description: string | undefined
  required: boolean
}

export interface Operation {
  /** Names of the parameters of its path, in order. */
  parameters: readonly string[]
  members: readonly Member[]
  /** Whether it answers with pages. */
  isList: boolean
}

interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: string[]
  const?: string
  format?: string
  default?: unknown
  description?: string
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

interface DescribedOperation {
  parameters: Array<{ name: string; in: string; required?: boolean; schema: Schema; description?: string }>
  requestBody?: { content: { 'application/json': { schema: Schema } } }
}

const { paths, components } = document as unknown as {
  paths: Record<string, Record<string, DescribedOperation>>
  components: { schemas: Record<string, Schema> }
}

/** What an endpoint takes. */
export function operationOf(name: EndpointName): Operation {
  const { method, path } = ENDPOINTS[name]
  const operation = paths[`/api${path}`]?.[method.toLowerCase()]
  if (operation === undefined) throw new Error(`${name} is missing in the OpenAPI document`)
  const query = operation.parameters
    .filter((parameter) => parameter.in === 'query')
    .map(({ name, schema, required, description }) => {
      return memberOf(
        name,
        'query',
        { ...resolved(schema), ...(description && { description }) },
        required === true,
      )
    })
  const body = operation.requestBody?.content['application/json'].schema
  return {
    parameters: operation.parameters.filter((each) => each.in === 'path').map((each) => each.name),
    members: [...query.filter((each) => !isPaging(each.name)), ...(body ? bodyMembers(body) : [])],
    isList: method === 'GET' && query.some((each) => each.name === 'cursor'),
  }
}

const isPaging = (name: string) => name === 'limit' || name === 'cursor'

/** The members of a body, of all its variants where it has several. */
function bodyMembers(schema: Schema): Member[] {
  const { oneOf, properties = {}, required = [] } = resolved(schema)
  // Alternatives beside members only say which of them go together.
  if (oneOf === undefined || Object.keys(properties).length > 0) {
    return Object.entries(properties).map(([name, each]) =>
      memberOf(name, 'body', each, required.includes(name) && each.default === undefined),
    )
  }
  const variants = oneOf.map(bodyMembers)
  const members = new Map(variants.flat().map((member) => [member.name, member]))
  return [...members.values()].map((member) => ({
    ...member,
    required: variants.every((variant) => variant.some((each) => each.name === member.name && each.required)),
  }))
}

function memberOf(name: string, place: Member['in'], schema: Schema, required: boolean): Member {
  const variants = variantsOf(schema)
  const values = variants.filter((variant) => variant.type !== 'null')
  const kinds = new Set(values.map(kindOf))
  return {
    name,
    in: place,
    kind: kinds.size === 1 ? ([...kinds][0] as Member['kind']) : 'json',
    nullable: variants.length > values.length,
    choices: values.flatMap((variant) => variant.enum ?? resolved(variant.items ?? {}).enum ?? []),
    preset: schema.default === undefined || schema.default === null ? undefined : String(schema.default),
    description: schema.description,
    required,
  }
}

const variantsOf = (schema: Schema): Schema[] => {
  const { anyOf, ...rest } = resolved(schema)
  return anyOf === undefined ? [rest] : anyOf.flatMap(variantsOf)
}

function kindOf({ type, items }: Schema): Member['kind'] {
  if (type === 'integer' || type === 'number') return 'number'
  if (type === 'boolean') return 'flag'
  if (type === 'array') return items && kindOf(resolved(items)) === 'text' ? 'texts' : 'json'
  return type === 'string' ? 'text' : 'json'
}

const resolved = ({ $ref, ...rest }: Schema): Schema =>
  $ref === undefined ? rest : { ...components.schemas[$ref.replace('#/components/schemas/', '')], ...rest }
