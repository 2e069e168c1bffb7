import { isModelOutput } from '../items/model-output.ts'
import type { ModelForm } from '../items/types/item-type.ts'
import { ITEM_TYPES } from '../items/types/item-types.ts'
import {
  callWithoutEffect,
  denialOf,
  type ReadDecision,
  readApprovalDecision,
  readApprovalRequest,
} from '../items/types/mcp-approvals.ts'
import type { ContextItem } from '../model/types.ts'

/** The result of a request for approval, and its place in the context. */
type Outcome = { index: number } & ({ kind: 'called' } | { kind: 'denied'; decision: ReadDecision })

/**
 * The forms in which a model gets requests for approval that were decided, with what they became: as the call that the
 * model has made, with its result or its denial. A result that came after further turns stays where it is, since the
 * model has answered without it. If several requests have one id, the first has the result: a caller could have the
 * result of one call repeated any number of times.
 * @returns for the items that have another form than that of their type.
 */
export function decidedApprovals(items: readonly ContextItem[]): Map<ContextItem, ModelForm> {
  const forms = new Map<ContextItem, ModelForm>()
  if (!items.some(({ type }) => type === 'mcp_approval_request')) return forms
  const called = items.map(approvedRequestOf)
  const outcomes = outcomesOf(items, called)
  const turns = turnNumbers(items, called)
  for (const [index, item] of items.entries()) {
    if (item.type !== 'mcp_approval_request') continue
    const requestId = readApprovalRequest(item)?.requestId
    const outcome = requestId === undefined ? undefined : outcomes.get(requestId)
    const decided = outcome && items[outcome.index]
    if (!decided || turns[index] !== turns[outcome.index]) continue
    const form = outcome.kind === 'called' ? formOfCall(decided) : denied(outcome.decision)
    forms.set(item, forms.has(decided) ? 'nothing' : form)
    forms.set(decided, 'nothing')
  }
  return forms
}

const denied =
  (decision: ReadDecision): ModelForm =>
  (item) =>
    callWithoutEffect(item, denialOf(decision))

/** A request gets the form of the call that was made for it. */
function formOfCall(call: ContextItem): ModelForm {
  const form = ITEM_TYPES.get(call.type)?.toModel ?? 'nothing'
  return typeof form === 'function' ? (_request, open) => form(call, open) : form
}

/** Outcomes by the ids of the requests. The first call counts, and a denial when there is none. */
function outcomesOf(
  items: readonly ContextItem[],
  called: ReadonlyArray<string | null>,
): Map<string, Outcome> {
  const outcomes = new Map<string, Outcome>()
  for (const [index, requestId] of called.entries()) {
    if (requestId !== null && !outcomes.has(requestId)) outcomes.set(requestId, { kind: 'called', index })
  }
  for (const [index, item] of items.entries()) {
    const decision = item.type === 'mcp_approval_response' ? readApprovalDecision(item) : null
    if (decision === null || decision.approve || outcomes.has(decision.requestId)) continue
    outcomes.set(decision.requestId, { kind: 'denied', index, decision })
  }
  return outcomes
}

/** The request for approval that a call was made for; null for other items. */
function approvedRequestOf({ type, bytes }: ContextItem): string | null {
  if (type !== 'mcp_call') return null
  const { approval_request_id: id } = JSON.parse(decoder.decode(bytes)) as Record<string, unknown>
  return typeof id === 'string' ? id : null
}

/**
 * The number of the model's turn that each item follows or is part of. The model's output begins one, after an item of the
 * caller; the calls that the caller has approved are no output of a turn.
 */
function turnNumbers(items: readonly ContextItem[], called: ReadonlyArray<string | null>): number[] {
  let turn = 0
  let isAsked = false
  return items.map((item, index) => {
    if (!isModelOutput(item)) isAsked = true
    else if (called[index] === null) {
      if (isAsked) turn++
      isAsked = false
    }
    return turn
  })
}

const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true })
