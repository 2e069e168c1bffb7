/** The id of an agent in place of a model id (interface: Responses): `agent/<agentId>`. No model has such an id. */
const PREFIX = 'agent/'

export const agentModel = (agentId: string): string => `${PREFIX}${agentId}`

export const isAgentModel = (model: string): boolean => model.startsWith(PREFIX)

/** The id of the agent, of any form. */
export const agentIdOf = (model: string): string => model.slice(PREFIX.length)
