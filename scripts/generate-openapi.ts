// npm run generate:openapi: writes the OpenAPI documents that the gateway serves as static files, and the types of the client.
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CLIENT_TYPES_FILE, clientTypes } from './openapi/client-types.ts'
import { managementDocument } from './openapi/management-document.ts'
import { publicDocument } from './openapi/public-document.ts'

/** The documents by their path on the gateway. @internal Read by the test that compares them with the files. */
export const DOCUMENTS = { '/openapi.json': publicDocument, '/api/openapi.json': managementDocument }

/** The file of a document. */
export const documentFile = (path: string): string => join(import.meta.dirname, '../public', path)

/** The text of a document, the same for the same schemas. */
export const documentText = (document: object): string => `${JSON.stringify(document, null, 1)}\n`

if (import.meta.main) {
  for (const [path, document] of Object.entries(DOCUMENTS)) {
    const file = documentFile(path)
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, documentText(document()))
  }
  writeFileSync(CLIENT_TYPES_FILE, await clientTypes(managementDocument()))
}
