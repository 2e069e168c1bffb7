import { agentContracts } from './agents.ts'
import { catalogueContracts } from './catalogue.ts'
import type { Contract } from './contract.ts'
import type { EndpointName } from './endpoints.ts'
import { integrationContracts } from './integrations.ts'
import { peopleContracts } from './people.ts'
import { policyContracts } from './policies.ts'
import { recordContracts } from './records.ts'

/** The schemas of every endpoint of the management API. */
export const CONTRACTS = {
  ...peopleContracts,
  ...policyContracts,
  ...integrationContracts,
  ...agentContracts,
  ...recordContracts,
  ...catalogueContracts,
} satisfies Record<EndpointName, Contract>

export type Contracts = typeof CONTRACTS
