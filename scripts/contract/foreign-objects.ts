import { signature } from '../../src/agents/triggers/webhook-signature.ts'
import { managementDocument } from '../openapi/management-document.ts'
import { publicDocument } from '../openapi/public-document.ts'
import type { OwnedObjects } from './owned-objects.ts'
import { BodySampler } from './sample-body.ts'

type Ids = Readonly<Record<string, string>>
type Schema = Record<string, unknown>

/** An operation with an id in its path. */
interface Operation {
  id: string
  method: string
  path: string
  /** The parameters that name an object of somebody. */
  objects: string[]
  /** Null for none. */
  body: Schema | null
}

interface Document {
  paths: Record<string, Record<string, { operationId: string; requestBody?: RequestBody }>>
  components: { schemas: Record<string, Schema> }
}
interface RequestBody {
  content: { 'application/json': { schema: Schema } }
}

/** Parameters that name a part, a kind or a version of what the other parameters name. */
const NO_OBJECTS = ['entitlement', 'version', 'trigger', 'name', 'path', 'itemId']

/** Who calls, and whose objects. */
export interface AccessParties {
  baseUrl: string
  adminToken: string
  /** What is called for. Each document has an owner, because the owners' own calls remove what they have. */
  owners: { management: OwnedObjects; public: OwnedObjects }
  /** Another organization with objects of its own, and one that may use nothing. */
  stranger: OwnedObjects
  outsiderKey: string
  /** Another member of the organization that owns the objects of the public API. */
  colleagueKey: string
}

export interface AccessReport {
  operations: number
  requests: number
  failures: string[]
}

/**
 * Calls every operation with an id in its path for the objects of another organization and of another member, and at the end for
 * one's own, which shows that the refused ids were right.
 */
export async function checkForeignObjects(parties: AccessParties): Promise<AccessReport> {
  const report: AccessReport = { operations: 0, requests: 0, failures: [] }
  const expectStatus = async (who: string, request: Request, isRight: (status: number) => boolean) => {
    report.requests += 1
    const answer = await fetch(request)
    const text = await answer.text()
    if (isRight(answer.status)) return
    const { pathname } = new URL(request.url)
    report.failures.push(`${who}: ${request.method} ${pathname}: ${answer.status} ${text.slice(0, 200)}`)
  }
  const documents = [publicCalls(parties), managementCalls(parties)]
  for (const { operations, refused } of documents) {
    report.operations += operations.length
    for (const operation of operations) {
      for (const { who, request, status } of refused(operation)) {
        await expectStatus(who, request, (got) => got === status)
      }
    }
  }
  for (const { operations, own } of documents) {
    for (const operation of operations.toSorted(byHarm)) {
      await expectStatus('its owner', own(operation), (got) => ![401, 403, 404].includes(got) && got < 500)
    }
  }
  return report
}

/** What removes comes last, parts before the whole; grants and connections of an integration go with it. */
function byHarm(left: Operation, right: Operation): number {
  const rank = ({ id, method, objects }: Operation) =>
    method !== 'DELETE' ? 0 : id === 'integrations.remove' ? 100 : 50 - objects.length
  return rank(left) - rank(right)
}

interface Refused {
  who: string
  request: Request
  status: number
}

interface DocumentCalls {
  operations: Operation[]
  refused(operation: Operation): Refused[]
  own(operation: Operation): Request
}

function publicCalls(parties: AccessParties): DocumentCalls {
  const { baseUrl, owners, stranger, outsiderKey, colleagueKey } = parties
  const { key, public: ids } = owners.public
  const document = publicDocument() as Document
  const request = requestMaker(baseUrl, document, ids)
  const strangers = { 'another organization': outsiderKey, 'another member': colleagueKey }
  const asked = (operation: Operation, sender: string, secret: string): Request =>
    operation.id === 'webhooks.fire' ? signedRequest(baseUrl, ids, secret) : request(operation, sender, ids)
  return {
    operations: operationsWithIds(document),
    refused: (operation) =>
      Object.entries(strangers).map(([who, sender]) => ({
        who,
        request: asked(operation, sender, stranger.webhookSecret),
        // A webhook is called by a signature in place of a key: that of another webhook is wrong.
        status: operation.id === 'webhooks.fire' ? 401 : 404,
      })),
    own: (operation) => asked(operation, key, owners.public.webhookSecret),
  }
}

/** A call of the agent's webhook (https://github.com/standard-webhooks/standard-webhooks). */
function signedRequest(baseUrl: string, { agentId, name }: Ids, secret: string): Request {
  const body = '{}'
  const [id, timestamp] = ['contract', String(Math.floor(Date.now() / 1_000))]
  return new Request(`${baseUrl}/v1/agents/${agentId}/triggers/${name}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': signature(secret, { id, timestamp }, body),
    },
    body,
  })
}

function managementCalls({ baseUrl, adminToken, owners, stranger }: AccessParties): DocumentCalls {
  const ids = owners.management.management
  const document = managementDocument() as Document
  const request = requestMaker(baseUrl, document, ids)
  return {
    // The administration token is no user with a session and passkeys; a test of rights calls these as each kind of member.
    operations: operationsWithIds(document).filter(
      ({ path }) => !path.startsWith('/api/me/') && !path.endsWith('/playground-keys'),
    ),
    refused: (operation) => {
      // Keys of the public API open nothing here, whatever they ask for.
      const byKey = { who: 'a key', request: request(operation, stranger.key, ids), status: 401 }
      if (!operation.path.includes('{organizationId}')) return [byKey]
      const foreign = operation.objects
        .filter((name) => name !== 'organizationId')
        .map((name) => ({
          who: `another organization, by its ${name}`,
          request: request(operation, adminToken, { ...stranger.management, ...only(ids, name) }),
          status: 404,
        }))
      return [byKey, ...foreign]
    },
    own: (operation) => request(operation, adminToken, ids),
  }
}

/** The values of one parameter, of whichever collection. */
const only = (ids: Ids, name: string): Ids =>
  Object.fromEntries(Object.entries(ids).filter(([key]) => key === name || key.endsWith(`/${name}`)))

function operationsWithIds({ paths }: Document): Operation[] {
  return Object.entries(paths).flatMap(([path, operations]) => {
    const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
    if (parameters.length === 0) return []
    return Object.entries(operations).map(([method, { operationId: id, requestBody }]) => ({
      id,
      method: method.toUpperCase(),
      path,
      objects: parameters.filter((name) => !NO_OBJECTS.includes(name)),
      body: requestBody?.content['application/json'].schema ?? null,
    }))
  })
}

/** Makes requests of the operations of a document. @param known ids for the members of bodies. */
function requestMaker(baseUrl: string, { components }: Document, known: Ids) {
  const sampler = new BodySampler(components.schemas, known)
  return ({ id, method, path, body }: Operation, key: string, ids: Ids): Request => {
    const at = path.replaceAll(/(\w[\w-]*)\/\{(\w+)\}/g, (_, collection: string, name: string) => {
      const value = ids[`${collection}/${name}`] ?? ids[name]
      if (value === undefined) throw new Error(`no object for ${name} of ${path}`)
      return `${collection}/${encodeURIComponent(value)}`
    })
    // A stream of live calls ends at once.
    const query = id === 'calls.tail' ? '?seconds=0' : ''
    return new Request(baseUrl + at + query, {
      method,
      headers: { authorization: `Bearer ${key}`, ...(body && { 'content-type': 'application/json' }) },
      ...(body && { body: JSON.stringify(sampler.sample(body)) }),
    })
  }
}
