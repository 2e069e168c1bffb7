/** Credentials that the scripted Bedrock knows. They open nothing but it. */
export const SCRIPTED_AWS = {
  region: 'us-east-1',
  accessKeyId: 'AKIASCRIPTEDUPSTREAM',
  secretAccessKey: 'scripted-upstream-secret-access-key',
  apiKey: 'bedrock-api-key-scripted-upstream',
} as const
