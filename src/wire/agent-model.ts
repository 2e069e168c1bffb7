/** What stands for an agent in the place of a model (interface: Responses): `agent/<agentId>`. No model has such an id. */
const PREFIX = 'agent/'

export const agentModel = (agentId: string): string => `${PREFIX}${agentId}`

export const isAgentModel = (model: string): boolean => model.startsWith(PREFIX)

/** The id of the agent, of any form. */
export const agentIdOf = (model: string): string => model.slice(PREFIX.length)
