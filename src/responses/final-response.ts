import type { Usage } from '../governance/credits.ts'
import { noPolicy } from '../governance/dlp/call-policy.ts'
import type { ResponseObject } from '../wire/responses.ts'
import type { ResponseEmitter } from './emitter.ts'
import type { ResponseEnd } from './engine.ts'
import type { LiveDeps } from './live-deps.ts'
import type { ResponseHead } from './object-state.ts'
import { sealReasoning } from './reasoning-seal.ts'
import { outputContextItem, sealedOf } from './said-items.ts'
import { finishResponse, type StoredItem } from './store.ts'
import { storedItems } from './stored-items.ts'
import type { Owner } from './types.ts'

/** What a response has become, as its object keeps it until Postgres has it. */
export interface FinalResponse {
  response: ResponseObject
  outputItems: StoredItem[]
}

/** The input of a response, as its object keeps it. */
export interface KeptInput {
  /** In the order of the request. */
  items: StoredItem[]
  /** Ids of those that were stored before. */
  referenced: string[]
}

/**
 * Fixes what a response came to.
 * @throws when large output cannot be stored.
 */
export async function finalResponse(
  deps: LiveDeps,
  owner: Owner,
  emitter: ResponseEmitter,
  end: ResponseEnd & { usage: Usage | null },
): Promise<FinalResponse> {
  const response = emitter.settle({ ...end, completedSeconds: Math.floor(deps.clock() / 1000) })
  const seal = (secret: Parameters<typeof sealReasoning>[2]) =>
    sealReasoning(deps.configuration.VAULT_KEYS, owner, secret)
  const items = response.output.map((item) =>
    outputContextItem(item, sealedOf(item, emitter.reasoningSecrets, seal)),
  )
  // What a policy had to say about the output was said while it was generated.
  return { response, outputItems: await storedItems(deps, owner, items, noPolicy) }
}

/** @throws when Postgres cannot be known to have it; doing it again does no harm. */
export async function writeFinal(
  deps: LiveDeps,
  head: ResponseHead,
  input: KeptInput,
  { response, outputItems }: FinalResponse,
  lastSequence: number,
): Promise<void> {
  if (response.status === 'in_progress') throw new Error('the response has not ended')
  const { output: _output, output_text: _text, ...body } = response
  const referenced = new Set(input.referenced)
  const inputItems = input.items.filter(({ id }) => !referenced.has(id))
  const status = await finishResponse(deps.database, head.owner, {
    id: head.responseId,
    status: response.status,
    body: JSON.stringify(body),
    completedAt: deps.clock(),
    lastSequence,
    inputItems,
    outputItems,
    usedItemIds: input.items.map(({ id }) => id),
    conversationId: head.conversationId,
  })
  // It was deleted meanwhile: what lies elsewhere is nobody's.
  if (status === null) await deps.contentStore.remove(contentKeys([...inputItems, ...outputItems]))
}

export const contentKeys = (items: readonly StoredItem[]): string[] =>
  items.flatMap(({ contentKey }) => (contentKey === null ? [] : [contentKey]))
