import type { CallIdentity, GovernedCall } from '../../calls/governed-call.ts'
import type { OpenTurn } from '../../gateway/model-turn.ts'
import { type CallerCredential, keyIdOf } from '../../identity/principal.ts'
import type { CallOutcome, Usage } from '../../ledger/audit-record.ts'
import type { Compatibility } from '../../wire/compatibility.ts'
import type { ResponseSettings } from '../../wire/responses.ts'
import { BEGINNING_EVENTS } from './events.ts'
import type { StoredTools } from './offered-tools.ts'
import type { Phase } from './phases.ts'
import type { ResponseEnd } from './response-end.ts'
import type { Owner, StartRequest } from './types.ts'

/** Why a running response is interrupted. */
export type Interruption = 'cancelled' | 'max_time'

/** The state that the object of a response stores besides its events and items. It is written with every change of phase. */
export interface ResponseHead {
  phase: Phase
  responseId: string
  owner: Owner
  /** Empty for a caller without a key. */
  keyId: string
  model: string
  compatibility: Compatibility
  store: boolean
  conversationId: string | null
  previousResponseId: string | null
  policyVersion: string
  /** Milliseconds since the epoch. */
  createdAt: number
  endedAt: number | null
  /** Time until which the context is held for its connection, beyond the window; null or absent if it is not held. */
  heldUntil?: number | null
  /** The workspace of the response that it continues on a connection, which has passed its files; absent if it has its own. */
  passedWorkspaceId?: string
  /** Whether the response's files are deleted, or passed to a later response. */
  filesGone?: boolean
  /** Whether Postgres may have a row of the response. */
  begun: boolean
  /** Whether the final write to Postgres is pending. */
  pendingWrite: boolean
  /** Whether Postgres refuses the response's items: it is then written as failed and without them. */
  refused?: boolean
  progress: Progress
  /** The running turn, if it is repeated after a restart; absent for a response that fails then. */
  turn?: RepeatedTurn
  /** Number of restarts after which it was resumed; of a response that repeats turns, those since its last turn. */
  restarts: number
  /** Ended calls whose outcome the ledger may not have. */
  unsettled: UnsettledCall[]
  /** Micro-credits that its ended calls cost; absent before the first one. */
  cost?: number
}

/** A turn that is asked again after a restart of the object. */
interface RepeatedTurn {
  /** Number of the last event before it. */
  after: number
  /** Whether a reader may have got an event of the turn. */
  shown: boolean
  /** Number of times that the turn was interrupted. */
  interruptions: number
}

/** An ended call that the ledger may still hold open. */
export interface UnsettledCall {
  call: GovernedCall
  outcome: CallOutcome
}

/** The progress of the engine. */
export interface Progress {
  /** Number of ended turns. */
  turns: number
  /** Number of consecutive last turns with refused calls only. */
  refusedTurns: number
  /** Number of server-side tool calls; absent before the first one. */
  toolCalls?: number
  /** The usage that ended calls were charged for. */
  usage: Usage | null
  /** Output tokens of `usage` that are not those of ended turns: of summaries and interrupted turns; absent if none. */
  otherOutput?: number
  /** The open model call; `after` is the number of the last event before it. */
  openCall: { open: OpenTurn; after: number } | null
  /** Call id of the next turn. */
  nextCallId: string | null
  /** The end of the response after the server-side calls of its last turn; null when another turn follows. */
  endAfterTools: ResponseEnd | null
}

/**
 * The inputs of further turns. They are stored with the end of the first turn if another one follows, and with the first turn if
 * it may be repeated.
 */
export interface StoredRequest {
  settings: ResponseSettings
  identity: CallIdentity
  /** The caller's credential, for reading its rights again after a restart. */
  credential: CallerCredential
  /** Names of the server-side tools that are offered to the model. */
  hostedTools: string[]
  /** Tools of integrations; absent if the request names no integration. */
  integrations?: StoredTools
  /** Micro-credits that the response may cost: it ends before the call that could exceed them. Absent without a limit. */
  creditLimit?: number
  /** Ids of the history. Items that others add to the conversation meanwhile are not part of the context. */
  historyIds: string[]
}

/** Micro-credits that further calls of a response may cost; undefined without a limit. */
export const creditsLeft = (
  { creditLimit }: Pick<StoredRequest, 'creditLimit'>,
  { cost = 0 }: Pick<ResponseHead, 'cost'>,
): number | undefined => (creditLimit === undefined ? undefined : creditLimit - cost)

export const isOwner = (head: ResponseHead, { organizationId, userId }: Owner): boolean =>
  head.owner.organizationId === organizationId && head.owner.userId === userId

export const ownerOf = ({ principal }: Pick<StartRequest, 'principal'>): Owner => ({
  organizationId: principal.organizationId,
  userId: principal.userId,
})

/** @param now milliseconds since the epoch. */
export const newHead = (request: StartRequest, now: number): ResponseHead => ({
  phase: 'admitting',
  responseId: request.responseId,
  owner: ownerOf(request),
  keyId: keyIdOf(request.principal) ?? '',
  model: '',
  compatibility: 'headgate',
  store: false,
  conversationId: null,
  previousResponseId: null,
  policyVersion: '',
  createdAt: now,
  endedAt: null,
  begun: false,
  pendingWrite: false,
  progress: {
    turns: 0,
    refusedTurns: 0,
    usage: null,
    openCall: null,
    nextCallId: null,
    endAfterTools: null,
  },
  ...(request.repeatsTurns && { turn: { after: BEGINNING_EVENTS, shown: false, interruptions: 0 } }),
  restarts: 0,
  unsettled: [],
})

/** The workspace of its tools: that of its conversation, or of its chain of responses on a connection, or its own. */
export const workspaceIdOf = ({
  conversationId,
  passedWorkspaceId,
  responseId,
}: Pick<ResponseHead, 'conversationId' | 'passedWorkspaceId' | 'responseId'>): string =>
  conversationId ?? passedWorkspaceId ?? responseId
