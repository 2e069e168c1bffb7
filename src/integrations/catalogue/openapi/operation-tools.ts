import { ApiError, unprocessable } from '../../../lib/api-error.ts'
import type { Slices } from '../../../lib/slices.ts'
import { withoutTrailing } from '../../../lib/without-trailing.ts'
import type { OperationBinding, ParameterBinding } from '../../types.ts'
import { isRecord, type Json, resolved } from './references.ts'
import { documentBudget, schemaConverter } from './schema-conversion.ts'

/** An operation as a tool, with the request that it becomes. */
interface OperationTool {
  tool: Json & { name: string }
  binding: OperationBinding
}

interface DocumentTools {
  operations: OperationTool[]
  /** Operations that cannot be tools, and why. */
  left: string[]
}

const METHODS = ['get', 'put', 'post', 'delete', 'patch'] as const
type Method = (typeof METHODS)[number]

/** Media types in order of preference. */
const MEDIA_TYPES = [/^application\/json\b/, /\+json\b/, /^application\/x-www-form-urlencoded\b/, /^text\//]

/** Set by the connection, or by the request itself (OpenAPI, Parameter Object, name). */
const RESERVED_HEADERS =
  /^(authorization|accept|content-.*|host|cookie|connection|transfer-encoding|proxy-.*|te|upgrade|via)$/i

/** Clients and models take no longer ones. */
const LONGEST_NAME = 100
/** Characters of an `operationId` or a path of which a name is made. */
const LONGEST_NAME_SOURCE = 1_000
const LONGEST_PATH = 2_000
/** Operations that are looked at, tools or not. References let a short document have many with many parameters each. */
const MOST_OPERATIONS = 10_000
const MOST_PARAMETERS = 1_000

/**
 * Turns the operations of a document into tools: `operationId` names them, parameters and body are their arguments.
 * Security is left to the connection. An operation that cannot be a tool does not hide the others. Done in slices, of one
 * operation each.
 * @throws ApiError unprocessable for a document with too many operations.
 */
export function* operationTools(document: Json): Slices<DocumentTools> {
  const operations: OperationTool[] = []
  const left: string[] = []
  const names = new Map<string, number>()
  const budget = documentBudget()
  for (const [path, item] of Object.entries(document.paths as Json)) {
    for (const method of METHODS) {
      try {
        const whole = resolved(document, item)
        if (whole[method] === undefined) continue
        const convert = schemaConverter(document, budget)
        operations.push(operationTool(document, { path, method, item: whole }, names, convert))
      } catch (error) {
        if (!(error instanceof ApiError)) throw error
        left.push(`${method} ${path.slice(0, LONGEST_PATH)}: ${error.message.replace(/^document: /, '')}`)
      }
      if (operations.length + left.length > MOST_OPERATIONS) {
        throw unprocessable(`document: has more than ${MOST_OPERATIONS} operations`)
      }
      yield
    }
  }
  return { operations, left }
}

interface Place {
  path: string
  method: Method
  /** The path item, with what its operations share. */
  item: Json
}

function operationTool(
  document: Json,
  place: Place,
  taken: Map<string, number>,
  convert: (schema: unknown) => Json,
): OperationTool {
  if (place.path.length > LONGEST_PATH) throw unprocessable('its path is too long')
  const operation = resolved(document, place.item[place.method])
  const parameters = parametersOf(document, place.item, operation)
  const properties: Json = {}
  const bindings: Record<string, ParameterBinding> = {}
  const required: string[] = []
  for (const parameter of parameters) {
    const name = argumentName(parameter, properties)
    properties[name] = parameterSchema(parameter, convert)
    bindings[name] = bindingOf(parameter)
    if (parameter.required === true || parameter.in === 'path') required.push(name)
  }
  const body = bodyOf(document, operation, convert)
  const bodyArgument = 'body' in properties ? 'request_body' : 'body'
  if (body) {
    properties[bodyArgument] = body.schema
    if (body.isRequired) required.push(bodyArgument)
  }
  const inputSchema = {
    type: 'object',
    properties,
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  }
  return {
    tool: {
      name: operationName(operation, place, taken),
      ...textsOf(operation, place),
      inputSchema,
      annotations: hintsOf(place.method),
    },
    binding: {
      method: place.method.toUpperCase(),
      path: place.path,
      parameters: bindings,
      ...(body && { body: { argument: bodyArgument, mediaType: body.mediaType } }),
    },
  }
}

/** Parameters of the operation, over those that its path shares (OpenAPI, Path Item Object, parameters). */
function parametersOf(document: Json, item: Json, operation: Json): Json[] {
  const byKey = new Map<string, Json>()
  for (const list of [item.parameters, operation.parameters]) {
    if (!Array.isArray(list)) continue
    if (list.length > MOST_PARAMETERS) throw unprocessable(`it has more than ${MOST_PARAMETERS} parameters`)
    for (const each of list) {
      const parameter = resolved(document, each)
      if (typeof parameter.name !== 'string' || !isPlace(parameter.in)) continue
      if (parameter.in === 'header' && RESERVED_HEADERS.test(parameter.name)) continue
      byKey.set(`${parameter.in} ${parameter.name}`, parameter)
    }
  }
  return [...byKey.values()]
}

const isPlace = (value: unknown): value is ParameterBinding['place'] =>
  value === 'path' || value === 'query' || value === 'header' || value === 'cookie'

/** Names that differ in their place alone are kept apart. */
function argumentName(parameter: Json, properties: Json): string {
  const name = String(parameter.name)
  return Object.hasOwn(properties, name) ? `${name}_${parameter.in}` : name
}

function parameterSchema(parameter: Json, convert: (schema: unknown) => Json): Json {
  const [content] = isRecord(parameter.content) ? Object.values(parameter.content) : []
  const schema = convert(isRecord(content) ? content.schema : parameter.schema)
  return typeof parameter.description === 'string'
    ? { ...schema, description: parameter.description }
    : schema
}

const STYLES = ['simple', 'form', 'spaceDelimited', 'pipeDelimited', 'deepObject'] as const

function bindingOf(parameter: Json): ParameterBinding {
  const place = parameter.in as ParameterBinding['place']
  const standard = place === 'query' || place === 'cookie' ? 'form' : 'simple'
  const style = isRecord(parameter.content)
    ? 'json'
    : (STYLES.find((each) => each === parameter.style) ?? standard)
  const explode = typeof parameter.explode === 'boolean' ? parameter.explode : style === 'form'
  return { place, name: String(parameter.name), style, explode }
}

interface Body {
  mediaType: string
  schema: Json
  isRequired: boolean
}

function bodyOf(document: Json, operation: Json, convert: (schema: unknown) => Json): Body | null {
  if (operation.requestBody === undefined) return null
  const body = resolved(document, operation.requestBody)
  const content = isRecord(body.content) ? body.content : {}
  const types = Object.keys(content)
  if (types.length === 0) return null
  const mediaType = MEDIA_TYPES.flatMap((wanted) => types.find((type) => wanted.test(type)) ?? []).at(0)
  if (mediaType === undefined) {
    throw new ApiError('unprocessable', `its body can only be ${types.join(' or ').slice(0, 100)}`)
  }
  const media = content[mediaType]
  const schema = convert(isRecord(media) ? media.schema : undefined)
  const description = typeof body.description === 'string' ? { description: body.description } : {}
  return { mediaType, schema: { ...description, ...schema }, isRequired: body.required === true }
}

/**
 * `operationId`, or method and path, in characters that models' APIs take.
 * @param taken names that others have, with the last number that was put behind each.
 */
function operationName(operation: Json, { path, method }: Place, taken: Map<string, number>): string {
  const { operationId } = operation
  const given = typeof operationId === 'string' && operationId !== '' ? operationId : `${method}${path}`
  const plain = given.slice(0, LONGEST_NAME_SOURCE).replace(/[^A-Za-z0-9_-]+/g, '_')
  const name = withoutTrailing(plain.replace(/^_+/, ''), '_').slice(0, LONGEST_NAME) || method
  let number = taken.get(name)
  let free = name
  while (taken.has(free)) {
    number = (number ?? 1) + 1
    free = `${name}_${number}`
  }
  taken.set(name, number ?? 1)
  taken.set(free, 1)
  return free
}

function textsOf({ summary, description, deprecated }: Json, { path, method }: Place): Json {
  const texts = [summary, description].filter((text) => typeof text === 'string' && text.trim() !== '')
  const text = texts.length > 0 ? [...new Set(texts)].join('\n\n') : `${method.toUpperCase()} ${path}`
  return {
    ...(typeof summary === 'string' && { title: summary }),
    description: deprecated === true ? `Deprecated. ${text}` : text,
  }
}

/** Hints that follow from the HTTP method (RFC 9110, section 9.2). */
const hintsOf = (method: Method): Json => ({
  readOnlyHint: method === 'get',
  ...(method !== 'get' && {
    destructiveHint: method !== 'post',
    idempotentHint: method === 'put' || method === 'delete',
  }),
  openWorldHint: true,
})
