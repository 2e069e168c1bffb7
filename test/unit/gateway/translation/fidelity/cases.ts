import { sources, words } from './answer-features.ts'
import { calls } from './call-features.ts'
import { cacheFeatures, conversationFeatures } from './conversation-features.ts'
import { endingGroups } from './ending-features.ts'
import { failures } from './failure-features.ts'
import type { AnswerFeature, Group } from './features.ts'
import { formatFeatures } from './format-features.ts'
import { limitFeatures } from './limit-features.ts'
import { mediaFeatures } from './media-features.ts'
import { reasoningFeatures } from './reasoning-features.ts'
import { completionFeatures, serviceFeatures, thoughtFeatures } from './service-features.ts'
import { toolChoices, toolDefinitions } from './tool-features.ts'
import { toolHistory } from './tool-history-features.ts'

/** Features of a request, in the order of the document. */
export const REQUEST_GROUPS: readonly Group[] = [
  conversationFeatures,
  mediaFeatures,
  toolDefinitions,
  toolChoices,
  toolHistory,
  limitFeatures,
  formatFeatures,
  reasoningFeatures,
  thoughtFeatures,
  cacheFeatures,
  serviceFeatures,
  completionFeatures,
]

/** Features of an answer. */
export const ANSWER_GROUPS: ReadonlyArray<Group<AnswerFeature>> = [
  words,
  calls,
  sources,
  ...endingGroups,
  failures,
]
