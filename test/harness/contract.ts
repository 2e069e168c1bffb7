import * as z from 'zod'
import { managementDocument } from '../../scripts/openapi/management-document.ts'
import { publicDocument } from '../../scripts/openapi/public-document.ts'
import { ANSWERS } from '../../src/wire/endpoints/answers/answers.ts'
import type { EndpointName } from '../../src/wire/endpoints/endpoints.ts'
import { PUBLIC_OPERATIONS } from '../../src/wire/public/operations.ts'

/** An operation of an OpenAPI document with the schema of its answers. */
interface Operation {
  id: string
  method: string
  path: RegExp
  /** Number of its parameters: where two paths match, the one with fewer is meant. */
  parameters: number
  statuses: ReadonlySet<string>
  answer: z.ZodType | null
}

interface Document {
  paths: Record<string, Record<string, { operationId: string; responses: Record<string, unknown> }>>
}

/** The violation of the contract in an answer of the gateway; null if there is none, or no document has the path. */
export function contractFault(method: string, url: string, status: number, body: unknown): string | null {
  const { pathname } = new URL(url)
  const operation = operationOf(method, pathname)
  if (operation === null) return null
  const isDescribed = operation.statuses.has(String(status)) || operation.statuses.has('default')
  if (!isDescribed) return `${operation.id} has no status ${status}`
  if (status >= 300 || operation.answer === null) return null
  const parsed = operation.answer.safeParse(body)
  return parsed.success ? null : `${operation.id}: ${z.prettifyError(parsed.error)}`
}

/** @throws when the answer breaks its contract. */
export function checkContract(method: string, url: string, status: number, body: unknown): void {
  const fault = contractFault(method, url, status, body)
  if (fault !== null) throw new Error(`the answer breaks its contract: ${fault}`)
}

function operationOf(method: string, pathname: string): Operation | null {
  const path = pathname.length > 1 ? pathname.replace(/\/$/, '') : pathname
  const matching = OPERATIONS.filter((operation) => operation.method === method && operation.path.test(path))
  return matching.sort((left, right) => left.parameters - right.parameters)[0] ?? null
}

const OPERATIONS: readonly Operation[] = [
  ...operationsOf(managementDocument() as Document, (id) => ANSWERS[id as EndpointName]),
  ...operationsOf(publicDocument() as Document, (id) => {
    const operation = PUBLIC_OPERATIONS[id]
    const answer = operation?.answers[200] ?? operation?.answers[201] ?? operation?.answers[202]
    // Members that a vendor defines pass as its upstream sent them, in errors too.
    return operation?.vendor || typeof answer === 'string' ? null : (answer ?? null)
  }).filter(({ id }) => PUBLIC_OPERATIONS[id]?.vendor === undefined),
]

function operationsOf(document: Document, answerOf: (id: string) => z.ZodType | null): Operation[] {
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, { operationId: id, responses }]) => ({
      id,
      method: method.toUpperCase(),
      path: new RegExp(
        `^${path
          .replaceAll('.', '\\.')
          .replace(/\{(modelId|path)\}/, '.+')
          .replaceAll(/\{\w+\}/g, '[^/]+')}$`,
      ),
      parameters: [...path.matchAll(/\{/g)].length,
      statuses: new Set(Object.keys(responses)),
      answer: answerOf(id),
    })),
  )
}
