import type * as z from 'zod'
import type { EndpointName } from '../endpoints.ts'
import { agentAnswers } from './agents.ts'
import { callAnswers } from './calls.ts'
import { catalogueAnswers } from './catalogue.ts'
import { integrationAnswers } from './integrations.ts'
import { peopleAnswers } from './people.ts'
import { policyAnswers } from './policies.ts'
import { recordAnswers } from './records.ts'
import { signInAnswers } from './sign-in.ts'

/**
 * The schema of the answer of each endpoint of the management API. They are strict: a member that is not listed is a fault of the
 * gateway. They describe the API and check it in tests; the gateway itself imports only their types.
 */
export const ANSWERS = {
  ...signInAnswers,
  ...peopleAnswers,
  ...policyAnswers,
  ...integrationAnswers,
  ...agentAnswers,
  ...recordAnswers,
  ...callAnswers,
  ...catalogueAnswers,
} satisfies Record<EndpointName, z.ZodType>

export type Answers = typeof ANSWERS
