import type { Principal } from '../../identity/principal.ts'
import { ApiError, invalidRequest } from '../../lib/api-error.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { fromLatestCompaction, secretOf } from '../context/kept-items.ts'
import { estimateFor, findModel } from '../context/load-context.ts'
import { type SealOpener, sealOpener } from '../items/sealed-content.ts'
import type { ResponseContext } from '../model/response-context.ts'
import type { ContextItem, Owner } from '../model/types.ts'
import type { ResponseDeps } from '../response-deps.ts'
import {
  type CompactedContext,
  type CompactionPlan,
  forcedPlan,
  planAutomaticCompaction,
} from './compaction-plan.ts'

/**
 * The items of a new request's context, from its latest compaction on.
 * @throws ApiError invalid_request for a compaction item in the input that cannot be opened. Unlike reasoning, which a
 *   model can do without, it stands for a whole conversation: to leave it out would change the answer unnoticed.
 */
export function compactedItems(
  deps: Parameters<typeof sealOpener>[0],
  owner: Owner,
  { history, input, referenced }: Pick<ResponseContext, 'history' | 'input' | 'referenced'>,
): ContextItem[] {
  const open = sealOpener(deps, owner)
  for (const item of input) if (!referenced.has(item.id)) checkOpens(item, open)
  return fromLatestCompaction([...history, ...input], open)
}

function checkOpens(item: ContextItem, open: SealOpener): void {
  if (item.type !== 'compaction' || secretOf(item, open)) return
  throw new ApiError(
    'invalid_request',
    'input: the encrypted_content of a compaction item cannot be opened. Send it unchanged, as the same user that got it from ' +
      'this service, or send the conversation that it stands for.',
    { code: 'invalid_encrypted_content' },
  )
}

/** An item that requests a compaction of everything before it, and no answer. */
const isTrigger = ({ type }: ContextItem): boolean => type === 'compaction_trigger'

/**
 * Whether a request ends with a `compaction_trigger`.
 * @throws ApiError invalid_request for one that is followed by other items.
 */
export function endsWithTrigger(input: readonly ContextItem[]): boolean {
  const index = input.findIndex(isTrigger)
  if (index >= 0 && index < input.length - 1) {
    throw invalidRequest(`input[${index}]: a compaction_trigger must be the last item.`)
  }
  return index >= 0
}

/**
 * The compaction that a context needs before the next turn, by `context_management` or a `compaction_trigger`.
 * @param settings those that the model gets, with all tools.
 * @returns null when it needs none, and for a model that does not exist, which the admission refuses.
 */
export async function neededCompaction(
  deps: ResponseDeps,
  principal: Principal,
  settings: ResponseSettings,
  context: CompactedContext,
  isTriggered: boolean,
): Promise<CompactionPlan | null> {
  if (!isTriggered && !settings.context_management?.length) return null
  const model = await findModel(deps, principal, settings.model)
  if (!model) return null
  const countTokens = await estimateFor(model, context.items)
  if (!isTriggered) return planAutomaticCompaction(context, settings, model, countTokens)
  const items = context.items.filter((item) => !isTrigger(item))
  return { ...forcedPlan({ ...context, items }, settings, model, countTokens), ends: true }
}
