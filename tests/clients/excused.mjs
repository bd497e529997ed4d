// What has no case here, and why.

export const EXCUSED_METHODS = {
  'interpreter.executeWithRetry': 'inside the client',
  'interpreter.isRetryableError': 'inside the client',
  'interpreter.parseErrorResponse': 'inside the client',
  'interpreter.readLines': 'inside the client',
  'interpreter.parseExecutionResult': 'inside the client',
  'watch.waitForReadiness': 'inside the client',
};

const platform = "the platform's, in front of the container";
const control = "the control plane's, not the agent's";
const client = 'made by the client itself';
const unused = 'no operation is refused with it: a more exact code is there';
const image = 'needs another image: tests/integration/agent_code_test.py';
const limits = 'needs limits of the kernel to be reached: tests/integration/agent_watch_limits_test.py';
const host = 'needs a host that is broken in a way a test cannot make here';

export const EXCUSED_CODES = {
  PORT_ALREADY_EXPOSED: platform,
  PORT_IN_USE: platform,
  PORT_NOT_EXPOSED: platform,
  INVALID_PORT_NUMBER: platform,
  SERVICE_NOT_RESPONDING: platform,
  CUSTOM_DOMAIN_REQUIRED: platform,
  BUCKET_MOUNT_ERROR: control,
  BUCKET_UNMOUNT_ERROR: control,
  S3FS_MOUNT_ERROR: control,
  MISSING_CREDENTIALS: control,
  INVALID_MOUNT_CONFIG: control,
  BACKUP_EXPIRED: control,
  OPENCODE_STARTUP_FAILED: client,
  PROCESS_READY_TIMEOUT: client,
  PROCESS_EXITED_BEFORE_READY: client,
  INVALID_JSON_RESPONSE: client,
  RPC_TRANSPORT_ERROR: client,
  INVALID_PORT: unused,
  COMMAND_PERMISSION_DENIED: unused,
  PROCESS_PERMISSION_DENIED: unused,
  STREAM_START_ERROR: unused,
  GIT_CHECKOUT_FAILED: host,
  GIT_OPERATION_FAILED: host,
  CODE_EXECUTION_ERROR: unused,
  INTERPRETER_NOT_READY: host,
  PYTHON_NOT_AVAILABLE: image,
  JAVASCRIPT_NOT_AVAILABLE: image,
  WATCH_NOT_FOUND: unused,
  WATCH_START_ERROR: limits,
  WATCH_STOP_ERROR: unused,
  TOO_MANY_FILES: host,
};
