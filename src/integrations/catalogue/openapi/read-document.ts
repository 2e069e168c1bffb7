import { unprocessable } from '../../../lib/api-error.ts'
import { isRecord, type Json } from './references.ts'

/** Characters of a document as JSON. */
const LARGEST_DOCUMENT = 5_000_000
/** Characters of an address, before and after its variables are replaced. */
const LONGEST_ADDRESS = 2_000

/**
 * Checks that a document is one of OpenAPI 3.0 or 3.1.
 * @throws ApiError unprocessable, saying what it is otherwise.
 */
export function checkDocument(document: Json): void {
  const { openapi, swagger, paths } = document
  if (typeof swagger === 'string') {
    throw unprocessable(
      `document: is Swagger ${swagger.slice(0, 10)}; convert it to OpenAPI 3.0 or 3.1 first`,
    )
  }
  if (typeof openapi !== 'string' || !/^3\.[01](\.|$)/.test(openapi)) {
    throw unprocessable('document: must be an OpenAPI document of version 3.0 or 3.1')
  }
  if (!isRecord(paths)) throw unprocessable('document: has no paths')
  const length = JSON.stringify(document).length
  if (length > LARGEST_DOCUMENT) {
    throw unprocessable(`document: has ${length} characters, and may have ${LARGEST_DOCUMENT}`)
  }
}

/**
 * The address of the first server of a document, with the defaults of its variables.
 * @throws ApiError unprocessable where it has none, or a relative one.
 */
export function serverUrl({ servers }: Json): string {
  const [server] = Array.isArray(servers) ? servers : []
  const template = isRecord(server) ? server.url : undefined
  if (typeof template !== 'string')
    throw unprocessable('url: is required, since the document names no server')
  const variables = isRecord(server) && isRecord(server.variables) ? server.variables : {}
  const url = template.slice(0, LONGEST_ADDRESS).replace(/\{([^{}]+)\}/g, (whole, name: string) => {
    const variable = variables[name]
    const text = isRecord(variable) ? variable.default : undefined
    return typeof text === 'string' && text.length <= LONGEST_ADDRESS ? text : whole
  })
  const isTooLong = Math.max(template.length, url.length) > LONGEST_ADDRESS
  if (!/^https?:\/\//.test(url) || url.includes('{') || isTooLong) {
    throw unprocessable('url: is required, since the first server of the document has no whole address')
  }
  return url
}
